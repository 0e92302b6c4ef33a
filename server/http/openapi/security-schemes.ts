/** How callers prove who they are. */
export const SECURITY_SCHEMES = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The token that logging in or registering returns.',
  },
  storeSignature: {
    type: 'apiKey',
    in: 'header',
    name: 'Shopify-Hmac-Sha256',
    description:
      "Base64 of HMAC-SHA256 over the raw body, with the store's webhook secret. Read before `X-Shopify-Hmac-Sha256`.",
  },
  storeSignatureX: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Shopify-Hmac-Sha256',
    description: 'The same signature under the other name that Shopify uses.',
  },
  processorSignature: {
    type: 'apiKey',
    in: 'header',
    name: 'webhook-signature',
    description:
      "`v1,` and base64 of HMAC-SHA256 over `webhook-id.webhook-timestamp.body`, with the processor's webhook secret (Standard Webhooks).",
  },
  metricsToken: { type: 'http', scheme: 'bearer', description: '`METRICS_TOKEN` of the settings.' },
}
