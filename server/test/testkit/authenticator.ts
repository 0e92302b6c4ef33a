import type { Clock } from '../../platform/clock.ts'
import { stepAt, totpCode } from '../../platform/crypto/totp.ts'

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** What an authenticator app shows for a secret in base32; `away` steps of 30 s from the clock's time. */
export function codeOf(secret: string, clock: Clock, away = 0): string {
  return totpCode(fromBase32(secret), stepAt(clock.now()) + away)
}

function fromBase32(text: string): Buffer {
  const bits = [...text].map((letter) => BASE32.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}
