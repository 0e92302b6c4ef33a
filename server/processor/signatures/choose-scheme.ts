import {
  bodyObject,
  bodyToken,
  createHmacScheme,
  type HmacSettings,
  headerToken,
  hmacSettingsSchema,
  refused,
  type SignatureScheme,
  type SignatureVerdict,
  type SignedRequest,
} from './hmac.ts'

const standard = createHmacScheme(
  hmacSettingsSchema.parse({
    template: '{id}.{timestamp}.{body}',
    encoding: 'base64',
    secret_encoding: 'base64',
    signature_header: 'webhook-signature',
    prefix: 'v1,',
    separator: ' ',
    timestamp_header: 'webhook-timestamp',
    id_header: 'webhook-id',
  }),
)

/**
 * Standard Webhooks (standardwebhooks.com, symmetric form): HMAC-SHA256 over `id.timestamp.body`. An id with a full stop is refused, because
 * the border between id and timestamp could be moved under a valid signature.
 */
export const standardWebhooks: SignatureScheme = {
  requiredHeaders: standard.requiredHeaders,
  verify(input) {
    const verdict = standard.verify({ ...input, secrets: input.secrets.map(base64Of) })
    return verdict.ok && verdict.deliveryId?.includes('.')
      ? refused('webhook-id contains a full stop')
      : verdict
  },
  sign: (input) => standard.sign({ ...input, secret: base64Of(input.secret) }),
  secretProblem: (secret) =>
    standard.secretProblem(base64Of(secret)) === null
      ? null
      : 'must be base64, with or without whsec_ before it',
}

/** A secret without its prefix. */
function base64Of(secret: string): string {
  return secret.replace(/^whsec_/, '')
}

/**
 * Safepay v2: HMAC-SHA512 over the body alone. Nothing dates the signature, so a captured body can come again at any time: the event id is
 * the signed body's own `token`.
 */
const safepayV2 = createHmacScheme(
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
const safepayRaast: SignatureScheme = {
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

const SCHEMES = {
  'standard-webhooks': standardWebhooks,
  'safepay-raast': safepayRaast,
  'safepay-v2': safepayV2,
}

type SignatureConfig = { scheme: keyof typeof SCHEMES } | { scheme: 'hmac'; hmac: HmacSettings }

/** The scheme by which the processor signs its events (`PROCESSOR_SIGNATURE`). */
export function createSignatureScheme(config: SignatureConfig): SignatureScheme {
  return config.scheme === 'hmac' ? createHmacScheme(config.hmac) : SCHEMES[config.scheme]
}
