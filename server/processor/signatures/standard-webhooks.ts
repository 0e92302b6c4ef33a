import { createHmacScheme, hmacSettingsSchema } from './hmac.ts'
import { refused, type SignatureScheme } from './scheme.ts'

const hmac = createHmacScheme(
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
  requiredHeaders: hmac.requiredHeaders,
  verify(input) {
    const verdict = hmac.verify({ ...input, secrets: input.secrets.map(base64Of) })
    return verdict.ok && verdict.deliveryId?.includes('.')
      ? refused('webhook-id contains a full stop')
      : verdict
  },
  sign: (input) => hmac.sign({ ...input, secret: base64Of(input.secret) }),
  secretProblem: (secret) =>
    hmac.secretProblem(base64Of(secret)) === null ? null : 'must be base64, with or without whsec_ before it',
}

/** A secret without its prefix. */
function base64Of(secret: string): string {
  return secret.replace(/^whsec_/, '')
}
