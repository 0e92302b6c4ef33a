import {
  anyMacMatches,
  base64Bytes,
  bodyObject,
  bodyToken,
  headerText,
  headerToken,
  isWithin,
  mac,
  readTimestamp,
  TOLERANCE_MS,
  writeTimestamp,
} from './mac.ts'
import { refused, type SignatureScheme, type SignatureVerdict, type SignedRequest } from './scheme.ts'

const SIGNATURE_PREFIX = 'sha256='

/**
 * Safepay Raast: HMAC-SHA256 over `timestamp.body`, fresh timestamp on each attempt. The event id header is not
 * signed, so it only counts when the signed body names the same id.
 */
export const safepayRaast: SignatureScheme = {
  requiredHeaders: ['x-sfpy-timestamp', 'x-sfpy-signature'],
  verify(input: SignedRequest): SignatureVerdict {
    const timestamp = headerText(input.headers, 'x-sfpy-timestamp')
    const signedAt = timestamp === null ? null : readTimestamp(timestamp, 'rfc3339')
    if (timestamp === null || signedAt === null) return refused('x-sfpy-timestamp is missing or not one time')
    const header = headerToken(input.headers, 'x-sfpy-signature')
    if (!header?.startsWith(SIGNATURE_PREFIX)) {
      return refused('x-sfpy-signature is missing or not one sha256= value')
    }
    if (!isWithin(TOLERANCE_MS, signedAt, input.now))
      return refused('x-sfpy-timestamp is too far from our clock')
    const matches = anyMacMatches({
      algorithm: 'sha256',
      encoding: 'hex',
      keys: input.secrets.map(base64Bytes),
      presented: [header.slice(SIGNATURE_PREFIX.length)],
      parts: [`${timestamp}.`, input.rawBody],
    })
    return matches ? withEventId(input, signedAt) : refused('no signature matches')
  },

  sign({ deliveryId, rawBody, secret, now }) {
    const key = base64Bytes(secret)
    if (key === null) throw new Error('a safepay-raast secret is base64')
    const timestamp = writeTimestamp(now, 'rfc3339')
    const signature = mac('sha256', key, [`${timestamp}.`, rawBody]).toString('hex')
    return {
      'x-sfpy-timestamp': timestamp,
      'x-sfpy-signature': `${SIGNATURE_PREFIX}${signature}`,
      'x-sfpy-event-id': deliveryId,
    }
  },

  secretProblem(secret) {
    return base64Bytes(secret) === null ? 'must be base64' : null
  },
}

/**
 * A signed body that is no JSON object cannot contradict the header; it is let in without an id, so that it can be
 * kept and set aside like every other malformed body.
 */
function withEventId(input: SignedRequest, signedAt: number): SignatureVerdict {
  const body = bodyObject(input.rawBody)
  if (body === null) return { ok: true, deliveryId: null, signedAt }
  const claimed = headerToken(input.headers, 'x-sfpy-event-id')
  const identifier = bodyToken(body, 'identifier')
  const bothAbsent = !Object.hasOwn(body, 'identifier') && input.headers['x-sfpy-event-id'] === undefined
  if (!bothAbsent && (identifier === null || claimed !== identifier)) {
    return refused('x-sfpy-event-id is not the identifier of the body')
  }
  return { ok: true, deliveryId: identifier, signedAt }
}
