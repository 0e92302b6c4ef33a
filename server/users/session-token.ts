import { createHash, randomBytes } from 'node:crypto'

/** 32 bytes in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/

export interface NewToken {
  /** For the client: shown once, never kept. */
  token: string
  /** For the table: SHA-256, hex. A random token needs no slow hash. */
  hash: string
}

export function createToken(): NewToken {
  const token = randomBytes(32).toString('base64url')
  return { token, hash: sha256(token) }
}

/** What a presented token is found by; `null` when it cannot be one of ours. */
export function hashOfToken(token: string): string | null {
  return TOKEN.test(token) ? sha256(token) : null
}

function sha256(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}
