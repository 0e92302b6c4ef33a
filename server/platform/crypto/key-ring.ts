import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

export type AppKey = ReturnType<typeof createAppKey>

/** The current key seals new values; former keys still open older ones. */
export interface AppKeys {
  readonly current: AppKey
  readonly former: readonly AppKey[]
}

/** One APP_KEY. Its bytes are not exposed: each use derives a key for its purpose, once. */
export function createAppKey(bytes: Buffer) {
  const derive = (purpose: string, length = 32) => Buffer.from(hkdfSync('sha256', bytes, '', purpose, length))
  const derived = new Map<string, { bytes: Buffer; secret: KeyObject }>()
  const keyFor = (purpose: string) => {
    const found = derived.get(purpose)
    if (found) return found
    const bytes = derive(purpose)
    const made = { bytes, secret: createSecretKey(bytes) }
    derived.set(purpose, made)
    return made
  }
  return {
    /** A public name of the key: 8 hex characters, derived from it. */
    id: derive('affiliate key id', 4).toString('hex'),
    /** 32 bytes by HKDF-SHA256 (RFC 5869), with `purpose` as the info. */
    derive: (purpose: string) => keyFor(purpose).bytes,
    /** HMAC-SHA256 of the text with the key derived for `purpose`, hex. */
    mac: (purpose: string, text: string) =>
      createHmac('sha256', keyFor(purpose).secret).update(text).digest('hex'),
  }
}

export function createAppKeys(current: Buffer, former: readonly Buffer[] = []): AppKeys {
  return { current: createAppKey(current), former: former.map(createAppKey) }
}

/** Every key, the current one first. */
export function allKeys({ current, former }: AppKeys): readonly AppKey[] {
  return [current, ...former]
}

/** The key that a text which begins with a key's id and a dot was made with, if it is in the ring. */
export function keyOfText(keys: AppKeys, text: string): AppKey | undefined {
  return allKeys(keys).find(({ id }) => text.startsWith(`${id}.`))
}
