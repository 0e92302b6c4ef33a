import { createCipheriv, createDecipheriv, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { type AppKey, type AppKeys, allKeys } from './key-ring.ts'

/** What a sealed value is bound to, as associated data: the value does not open in another row, for another owner or with changed facts. */
export interface Binding {
  /** The column. */
  purpose: string
  /** The row's id. */
  row: string
  /** The id of the row's owner. */
  owner: string
  /** Further columns of the row that must not change, in a fixed order. */
  facts: readonly (string | number | null)[]
}

export type Vault = ReturnType<typeof createVault>

/** A stored value that was changed or moved from another row or column, or contradicts its other columns. */
export class IntegrityError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'IntegrityError'
  }
}

/** A value that was sealed with a key that is not in the ring. */
export class UnknownKeyError extends Error {
  readonly keyId: string

  constructor(keyId: string) {
    super(
      `sealed with the key ${keyId}, which is neither APP_KEY nor in APP_KEYS_FORMER: add that key to APP_KEYS_FORMER and restart`,
    )
    this.name = 'UnknownKeyError'
    this.keyId = keyId
  }
}

/** `v2.<key id>.<iv, tag and text in base64url>`, bound to a row. */
const BOUND = 'v2'

const ENCRYPTION = 'affiliate encrypt bound'
const FINGERPRINT = 'affiliate fingerprint'

/** Encrypts stored secrets: AES-256-GCM under keys derived from APP_KEY. */
export function createVault(keys: AppKeys) {
  const current = keys.current.id
  const currentPrefix = `${BOUND}.${current}.`
  const fingerprintOf = (key: AppKey, text: string, purpose: string) =>
    key.mac(FINGERPRINT, `${purpose}\0${text}`)
  return {
    /** Seals with the current key. */
    seal(text: string, binding: Binding): string {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', keys.current.derive(ENCRYPTION), iv).setAAD(
        boundTo(current, binding),
      )
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return `${currentPrefix}${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`
    },
    /** Throws `UnknownKeyError` when the key is not in the ring, `IntegrityError` when the value was changed or moved. */
    open(sealed: string, binding: Binding): string {
      const [version, keyId, payload, ...more] = sealed.split('.')
      if (version !== BOUND || !keyId || !payload || more.length > 0) throw new IntegrityError('is malformed')
      const key = allKeys(keys).find(({ id }) => id === keyId)
      // A stored key id may hold anything; the message repeats only a well-formed one.
      if (!key && /^[0-9a-f]{8}$/.test(keyId)) throw new UnknownKeyError(keyId)
      if (!key) throw new IntegrityError('is malformed')
      return decrypt(key.derive(ENCRYPTION), payload, boundTo(keyId, binding))
    },
    isCurrent: (sealed: string) => sealed.startsWith(currentPrefix),
    /** A keyed hash, hex: finds equal texts, and cannot be guessed without the key. */
    fingerprint: (text: string, purpose: string) => fingerprintOf(keys.current, text, purpose),
    /** The fingerprints under every key of the ring, the current key first: a row may hold any of them during a rotation. */
    fingerprints: (text: string, purpose: string) =>
      allKeys(keys).map((key) => fingerprintOf(key, text, purpose)),
  }
}

/** The key id in a sealed value; `null` for any other text. */
export function sealedKeyId(sealed: string): string | null {
  const [version, keyId] = sealed.split('.')
  return version === BOUND && keyId ? keyId : null
}

function boundTo(keyId: string, { purpose, row, owner, facts }: Binding): Buffer {
  return Buffer.from(JSON.stringify([BOUND, keyId, purpose, row, owner, ...facts]))
}

/** Hex SHA-256 of a text's UTF-8 bytes. */
export function sha256(text: string): string {
  return hash('sha256', text)
}

/** Compares a text from outside with a secret, in the same time for every text. */
export function isSameText(given: string, secret: string): boolean {
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', secret, 'buffer'))
}

const IV_BYTES = 12
const TAG_BYTES = 16

/** Throws `IntegrityError` when the tag does not match. */
function decrypt(key: Buffer, payload: string, bound: Buffer): string {
  const bytes = Buffer.from(payload, 'base64url')
  const body = IV_BYTES + TAG_BYTES
  try {
    // Node accepts shorter tags, and four bytes can be guessed.
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    })
    decipher.setAAD(bound).setAuthTag(bytes.subarray(IV_BYTES, body))
    return decipher.update(bytes.subarray(body), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    throw new IntegrityError('does not open: it was changed or moved')
  }
}
