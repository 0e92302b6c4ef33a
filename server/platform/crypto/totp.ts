import { createHmac, timingSafeEqual } from 'node:crypto'

/*
 * Time-based one-time passwords (RFC 6238) with the parameters that every authenticator app supports: SHA-1, steps of 30 seconds, six digits.
 */

const STEP_MS = 30_000
const DIGITS = 6
/** Steps before and after the present one whose codes are accepted, for clocks that differ and codes that were typed late. */
const WINDOW = 1
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 base32 without padding. */
export function toBase32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? []).map((five) => BASE32[Number.parseInt(five.padEnd(5, '0'), 2)]).join('')
}

/** The number of the time step at `now` (epoch ms). */
export function stepAt(now: number): number {
  return Math.floor(now / STEP_MS)
}

/** The code of a time step; eight digits at most. */
export function totpCode(secret: Buffer, step: number, digits = DIGITS): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const offset = mac.readUInt8(mac.length - 1) & 0x0f
  const number = mac.readUInt32BE(offset) & 0x7f_ff_ff_ff
  return String(number % 10 ** digits).padStart(digits, '0')
}

/** The step whose code this is, of those accepted at `now` (epoch ms); `null` for a wrong code. Takes the same time for each. */
export function matchingStep(secret: Buffer, code: string, now: number): number | null {
  const given = Buffer.from(code)
  let found: number | null = null
  for (let step = stepAt(now) - WINDOW; step <= stepAt(now) + WINDOW; step += 1) {
    const expected = Buffer.from(totpCode(secret, step))
    if (given.length === expected.length && timingSafeEqual(given, expected)) found = step
  }
  return found
}

/** The address that authenticator apps read from a QR code. */
export function otpauthUrl(issuer: string, account: string, secret: Buffer): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  return `otpauth://totp/${label}?secret=${toBase32(secret)}&issuer=${encodeURIComponent(issuer)}`
}
