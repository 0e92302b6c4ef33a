import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { type AppKeys, allKeys } from './key-ring.ts'

/** Secrets at rest: AES-256-GCM under a key derived from APP_KEY, each bound to what it is for. */
export interface Vault {
  /** `purpose` is authenticated with the text: a value moved to another column does not open. */
  encrypt(text: string, purpose: string): string
  decrypt(sealed: string, purpose: string): string
  /** A keyed hash, hex: equal texts can be found, but not guessed without the key. */
  fingerprint(text: string, purpose: string): string
}

const VERSION = 'v1'
const ENCRYPTION = 'affiliate encrypt'
const FINGERPRINT = 'affiliate fingerprint'

/** What a vault derives keys for. */
export const VAULT_PURPOSES = [ENCRYPTION, FINGERPRINT]

export function createVault(keys: AppKeys): Vault {
  const encryptionKeys = allKeys(keys).map((key) => key.derive(ENCRYPTION))
  const encryptionKey = keys.current.derive(ENCRYPTION)
  const fingerprintKey = keys.current.derive(FINGERPRINT)
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
      const opened = firstThatOpens(encryptionKeys, (key) => openBytes(key, bytes, purpose))
      return opened.toString('utf8')
    },
    fingerprint(text, purpose) {
      return createHmac('sha256', fingerprintKey).update(`${purpose}\0${text}`).digest('hex')
    },
  }
}

/** Throws when the text was sealed with another key or for another purpose, or was changed. */
function openBytes(key: Buffer, bytes: Buffer, purpose: string): Buffer {
  // Without the length a cut-off tag of four bytes would do, and those can be guessed.
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 })
  decipher.setAAD(Buffer.from(purpose)).setAuthTag(bytes.subarray(12, 28))
  return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()])
}

/** Throws the first key's error when none opens. */
function firstThatOpens<T>(keys: readonly Buffer[], open: (key: Buffer) => T): T {
  let problem: unknown
  for (const key of keys) {
    try {
      return open(key)
    } catch (error) {
      problem ??= error
    }
  }
  throw problem
}
