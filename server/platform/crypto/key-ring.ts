import { hkdfSync } from 'node:crypto'

/** One APP_KEY. Its bytes are not exposed: each use derives a key for its purpose. */
interface AppKey {
  /** A public name of the key: 8 hex characters, derived from it. */
  readonly id: string
  /** 32 bytes by HKDF-SHA256 (RFC 5869), with `purpose` as the info. */
  derive(purpose: string): Buffer
}

/** The current key seals new values; former keys still open older ones. */
export interface AppKeys {
  readonly current: AppKey
  readonly former: readonly AppKey[]
}

const ID_PURPOSE = 'affiliate key id'
const ID_BYTES = 4

export function createAppKey(bytes: Buffer): AppKey {
  const derive = (purpose: string, length: number) =>
    Buffer.from(hkdfSync('sha256', bytes, '', purpose, length))
  return {
    id: derive(ID_PURPOSE, ID_BYTES).toString('hex'),
    derive: (purpose) => derive(purpose, 32),
  }
}

export function createAppKeys(current: Buffer, former: readonly Buffer[] = []): AppKeys {
  return { current: createAppKey(current), former: former.map(createAppKey) }
}

/** Every key, the current one first. */
export function allKeys({ current, former }: AppKeys): readonly AppKey[] {
  return [current, ...former]
}
