import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'

const SHA256_BYTES = 32

/**
 * The value of the header `Shopify-Hmac-Sha256`: base64 of HMAC-SHA256 over the raw body, keyed by the secret as UTF-8.
 * https://shopify.dev/docs/apps/build/webhooks/subscribe/https#step-2-validate-the-origin-of-your-webhook
 */
export function signShopifyBody(rawBody: Buffer, secret: string | KeyObject): string {
  const key = typeof secret === 'string' ? createSecretKey(secret, 'utf8') : secret
  return createHmac('sha256', key).update(rawBody).digest('base64')
}

/** Whether `digest` is the HMAC of these bytes, in constant time. An empty secret never matches, since anyone could sign with it. */
export function matchesShopifyHmac(rawBody: Buffer, digest: Buffer, key: KeyObject): boolean {
  return (
    key.symmetricKeySize !== 0 && timingSafeEqual(createHmac('sha256', key).update(rawBody).digest(), digest)
  )
}

/** The 32 bytes of the header; `null` for anything but their canonical base64, since Node's decoder skips other characters. */
export function decodeShopifyHmac(header: string | undefined): Buffer | null {
  if (header === undefined) return null
  const bytes = Buffer.from(header, 'base64')
  return bytes.length === SHA256_BYTES && bytes.toString('base64') === header ? bytes : null
}
