import {
  anyMacMatches,
  base64Bytes,
  headerText,
  headerToken,
  isWithin,
  mac,
  readTimestamp,
  TOLERANCE_MS,
  writeTimestamp,
} from './mac.ts'
import { refused, type SignatureScheme, type SignatureVerdict, type SignedRequest } from './scheme.ts'

const SECRET_PREFIX = 'whsec_'
const SIGNATURE_PREFIX = 'v1,'

/**
 * Standard Webhooks (standardwebhooks.com, symmetric form): HMAC-SHA256 over `id.timestamp.body`. The id may
 * hold no full stop, otherwise the border between id and timestamp could be moved under a valid signature.
 */
export const standardWebhooks: SignatureScheme = {
  requiredHeaders: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
  verify(input: SignedRequest): SignatureVerdict {
    const id = headerToken(input.headers, 'webhook-id')
    if (id === null || id.includes('.')) return refused('webhook-id is missing or not one plain id')
    const timestamp = headerText(input.headers, 'webhook-timestamp')
    const signedAt = timestamp === null ? null : readTimestamp(timestamp, 'unix_seconds')
    if (timestamp === null || signedAt === null)
      return refused('webhook-timestamp is missing or not one time')
    const header = headerText(input.headers, 'webhook-signature')
    // Signatures of one header are parted by blanks only; a comma before a blank means two joined headers.
    if (header === null || /,(\s|$)/.test(header)) {
      return refused('webhook-signature is missing or came several times')
    }
    if (!isWithin(TOLERANCE_MS, signedAt, input.now))
      return refused('webhook-timestamp is too far from our clock')
    const presented = header
      .split(' ')
      .filter((part) => part.startsWith(SIGNATURE_PREFIX))
      .map((part) => part.slice(SIGNATURE_PREFIX.length))
    const keys = input.secrets.map(keyOf)
    const parts = [`${id}.${timestamp}.`, input.rawBody]
    if (!anyMacMatches({ algorithm: 'sha256', encoding: 'base64', keys, presented, parts })) {
      return refused('no signature matches')
    }
    return { ok: true, deliveryId: id, signedAt }
  },

  sign({ deliveryId, rawBody, secret, now }) {
    const key = keyOf(secret)
    if (key === null)
      throw new Error('a standard-webhooks secret is base64, with or without whsec_ before it')
    const timestamp = writeTimestamp(now, 'unix_seconds')
    const signature = mac('sha256', key, [`${deliveryId}.${timestamp}.`, rawBody]).toString('base64')
    return {
      'webhook-id': deliveryId,
      'webhook-timestamp': timestamp,
      'webhook-signature': `${SIGNATURE_PREFIX}${signature}`,
    }
  },

  secretProblem(secret) {
    return keyOf(secret) === null ? 'must be base64, with or without whsec_ before it' : null
  },
}

function keyOf(secret: string): Buffer | null {
  return base64Bytes(secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret)
}
