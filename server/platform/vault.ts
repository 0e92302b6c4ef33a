import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'

/** Secrets at rest: AES-256-GCM under a key derived from APP_KEY, each bound to what it is for. */
export interface Vault {
  /** `purpose` is authenticated with the text: a value moved to another column does not open. */
  encrypt(text: string, purpose: string): string
  decrypt(sealed: string, purpose: string): string
  /** A keyed hash, hex: equal texts can be found, but not guessed without the key. */
  fingerprint(text: string, purpose: string): string
}

const VERSION = 'v1'

export function createVault(appKey: Buffer): Vault {
  const encryptionKey = Buffer.from(hkdfSync('sha256', appKey, '', 'affiliate encrypt', 32))
  const fingerprintKey = Buffer.from(hkdfSync('sha256', appKey, '', 'affiliate fingerprint', 32))
  return {
    encrypt(text, purpose) {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', encryptionKey, iv).setAAD(Buffer.from(purpose))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return `${VERSION}.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`
    },
    decrypt(sealed, purpose) {
      const [version, payload, ...more] = sealed.split('.')
      if (version !== VERSION || !payload || more.length > 0)
        throw new Error('sealed with an unknown version')
      const bytes = Buffer.from(payload, 'base64url')
      // Without the length a cut-off tag of four bytes would do, and those can be guessed.
      const decipher = createDecipheriv('aes-256-gcm', encryptionKey, bytes.subarray(0, 12), {
        authTagLength: 16,
      })
      decipher.setAAD(Buffer.from(purpose)).setAuthTag(bytes.subarray(12, 28))
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8')
    },
    fingerprint(text, purpose) {
      return createHmac('sha256', fingerprintKey).update(`${purpose}\0${text}`).digest('hex')
    },
  }
}
