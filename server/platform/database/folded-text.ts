import { withPlainDigits } from '../../../shared/pasted-text.ts'

/*
 * Text folding for search and comparison, the same on both databases: SQLite folds ASCII only, PostgreSQL by the server's locale, and their
 * parsers disagree on hyphens, numbers, Urdu and emoji. A change of these rules needs a migration that folds the stored texts again.
 */

/** Keys go into indexes; PostgreSQL allows 2,700 bytes for an index entry. */
const MAX_KEY_LENGTH = 120
const MAX_WORD_LENGTH = 40

/** Optional diacritics in Latin and Arabic script. */
const OPTIONAL_SIGNS =
  /[\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]/g
/** Joiners, direction marks, variation selectors, tatweel and apostrophes. */
const INVISIBLE = /\p{Cf}|\p{Variation_Selector}|[\u0640'\u2019\u02bc]/gu
/** Letters that look alike, or have different codes on the keyboards of Urdu, Arabic, Sindhi and Pashto: each stands for the first. */
const ALIKE = [
  '\u06c1\u0629\u0647\u06be\u06c3\u06d5\u06ff',
  '\u06cc\u0620\u063d\u063e\u063f\u0649\u064a\u06cd\u06ce\u06d0\u06d1',
  '\u06a9\u063b\u063c\u0643\u06aa',
  '\u0627\u0671',
]
const FIRST_ALIKE = new Map(ALIKE.flatMap(([first, ...others]) => others.map((letter) => [letter, first])))
const LETTER_ALIKE = new RegExp(`[${[...FIRST_ALIKE.keys()].join('')}]`, 'g')
/** A run of letters, digits and signs; a flag; or one emoji. */
const WORD = /[\p{L}\p{N}\p{M}]+|\p{RI}{2}|\p{Extended_Pictographic}/gu

/** Lower case, without diacritics, one code for each letter and digit, single spaces. */
function fold(text: string): string {
  const bare = text
    .toWellFormed()
    .toLowerCase()
    .normalize('NFKD')
    .toLowerCase()
    .replace(OPTIONAL_SIGNS, '')
    .replace(INVISIBLE, '')
    .normalize('NFC')
    .replace(LETTER_ALIKE, (letter) => FIRST_ALIKE.get(letter) ?? letter)
  return withPlainDigits(bare).replace(/\s+/g, ' ').trim()
}

/** The same for names that differ only in case or spelling; at most 120 characters. */
export function foldedKey(text: string): string {
  return [...fold(text)].slice(0, MAX_KEY_LENGTH).join('')
}

/** The distinct words of a text in the order of their first use, without punctuation, each at most 40 characters. */
export function foldedWords(text: string): string[] {
  const words = fold(text).match(WORD) ?? []
  return [...new Set(words.map((word) => [...word].slice(0, MAX_WORD_LENGTH).join('')))]
}
