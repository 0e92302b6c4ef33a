import { randomBytes } from 'node:crypto'

/** Digits and small letters that people do not confuse: no 0, 1, i, l, o. */
const ALPHABET = '23456789abcdefghjkmnpqrstuvwxyz'
/** 31^10 is about 2^49: short enough for a caption, and nobody finds somebody's links by trying. */
const LENGTH = 10
/** The largest multiple of the alphabet's length in a byte: bytes above it would favour its first letters. */
const FAIR_BYTES = 256 - (256 % ALPHABET.length)

/** The cache of where links lead, by slug. Clear it when an offer's status or product address changes. */
export const LINK_TARGETS = 'slug'

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

/** Whether a text from outside can be a slug at all; wider than what is made now, so that old links outlive a change. */
export function canBeSlug(text: string): boolean {
  return SLUG.test(text)
}
