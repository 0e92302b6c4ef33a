import { randomBytes } from 'node:crypto'

/** Digits and lower-case letters without the ambiguous 0, 1, i, l, o. */
const ALPHABET = '23456789abcdefghjkmnpqrstuvwxyz'
/** 31^10 is about 2^49: too many to guess, and short enough for a caption. */
const LENGTH = 10
/** The largest multiple of the alphabet's length in a byte: bytes above it would favor its first letters. */
const FAIR_BYTES = 256 - (256 % ALPHABET.length)

const SLUG = /^[0-9a-z]{4,32}$/

export function randomSlug(): string {
  let slug = ''
  while (slug.length < LENGTH) {
    for (const byte of randomBytes(LENGTH)) {
      if (byte < FAIR_BYTES && slug.length < LENGTH) slug += ALPHABET[byte % ALPHABET.length]
    }
  }
  return slug
}

/** Whether a text can be a slug. Accepts more than `randomSlug` makes, so that its format can change. */
export function canBeSlug(text: string): boolean {
  return SLUG.test(text)
}
