import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** A value in the first format, as commit 309daf1 wrote it: bound to `purpose` and to nothing else. */
export function sealUnbound(appKey: Buffer, text: string, purpose: string): string {
  const key = Buffer.from(hkdfSync('sha256', appKey, '', 'affiliate encrypt', 32))
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(purpose))
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return `v1.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`
}

/** The mark that the first start of commit 309daf1 left: while it stands, unbound values are accepted. */
export function unboundMark(appKey: Buffer): { name: string; value: string } {
  return {
    name: 'app_key',
    value: sealUnbound(appKey, 'sealed by the key of this database', 'app key check'),
  }
}
