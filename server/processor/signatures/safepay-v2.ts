import { anyMacMatches, bodyObject, bodyToken, headerToken, mac, textBytes } from './mac.ts'
import { refused, type SignatureScheme, type SignatureVerdict, type SignedRequest } from './scheme.ts'

/**
 * Safepay v2: HMAC-SHA512 over the body alone, the secret as text. Nothing dates the signature, so a captured body
 * can come again at any time: the event id is therefore the signed body's own `token`.
 */
export const safepayV2: SignatureScheme = {
  requiredHeaders: ['x-sfpy-signature'],
  verify(input: SignedRequest): SignatureVerdict {
    const header = headerToken(input.headers, 'x-sfpy-signature')
    if (header === null) return refused('x-sfpy-signature is missing or not one value')
    const matches = anyMacMatches({
      algorithm: 'sha512',
      encoding: 'hex',
      keys: input.secrets.map(textBytes),
      presented: [header],
      parts: [input.rawBody],
    })
    if (!matches) return refused('no signature matches')
    return { ok: true, deliveryId: bodyToken(bodyObject(input.rawBody), 'token'), signedAt: null }
  },

  sign({ rawBody, secret }) {
    const key = textBytes(secret)
    if (key === null) throw new Error('a safepay-v2 secret is a text that is not empty')
    return { 'x-sfpy-signature': mac('sha512', key, [rawBody]).toString('hex') }
  },

  secretProblem(secret) {
    return secret === '' ? 'must not be empty' : null
  },
}
