import { createHmacScheme, hmacSettingsSchema } from './hmac.ts'
import { bodyObject, bodyToken, headerToken } from './mac.ts'
import { refused, type SignatureScheme, type SignatureVerdict, type SignedRequest } from './scheme.ts'

/**
 * Safepay v2: HMAC-SHA512 over the body alone. Nothing dates the signature, so a captured body can come again at any time: the event id is
 * the signed body's own `token`.
 */
export const safepayV2 = createHmacScheme(
  hmacSettingsSchema.parse({ algorithm: 'sha512', signature_header: 'x-sfpy-signature', id_field: 'token' }),
)

const raast = createHmacScheme(
  hmacSettingsSchema.parse({
    template: '{timestamp}.{body}',
    secret_encoding: 'base64',
    signature_header: 'x-sfpy-signature',
    prefix: 'sha256=',
    timestamp_header: 'x-sfpy-timestamp',
    timestamp_format: 'rfc3339',
  }),
)

/** Safepay Raast: HMAC-SHA256 over `timestamp.body`. The event id header is unsigned, so it must equal the id in the signed body. */
export const safepayRaast: SignatureScheme = {
  ...raast,
  verify(input) {
    const verdict = raast.verify(input)
    return verdict.ok ? withEventId(input, verdict) : verdict
  },
  sign: (input) => ({ ...raast.sign(input), 'x-sfpy-event-id': input.deliveryId }),
}

/** A signed body that is not a JSON object names no id. It is accepted without one and later set aside like every malformed body. */
function withEventId(input: SignedRequest, verdict: SignatureVerdict): SignatureVerdict {
  const body = bodyObject(input.rawBody)
  if (body === null) return verdict
  const claimed = headerToken(input.headers, 'x-sfpy-event-id')
  const identifier = bodyToken(body, 'identifier')
  const bothAbsent = !Object.hasOwn(body, 'identifier') && input.headers['x-sfpy-event-id'] === undefined
  if (!bothAbsent && (identifier === null || claimed !== identifier))
    return refused('x-sfpy-event-id is not the identifier of the body')
  return { ...verdict, deliveryId: identifier } as SignatureVerdict
}
