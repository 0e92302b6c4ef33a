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
/** Letters with different codes on Arabic and Urdu keyboards. */
const URDU_LETTERS: Readonly<Record<string, string>> = {
  '\u064a': '\u06cc',
  '\u0649': '\u06cc',
  '\u0643': '\u06a9',
  '\u0647': '\u06c1',
  '\u06d5': '\u06c1',
}
const ARABIC_LETTER_OR_DIGIT = /[\u064a\u0649\u0643\u0647\u06d5\u0660-\u0669\u06f0-\u06f9]/g
/** A run of letters, digits and signs; a flag; or one emoji. */
const WORD = /[\p{L}\p{N}\p{M}]+|\p{RI}{2}|\p{Extended_Pictographic}/gu

/** Lower case, without diacritics, one code for each letter and digit, single spaces. */
function fold(text: string): string {
  return text
    .toWellFormed()
    .toLowerCase()
    .normalize('NFKD')
    .toLowerCase()
    .replace(OPTIONAL_SIGNS, '')
    .replace(INVISIBLE, '')
    .normalize('NFC')
    .replace(ARABIC_LETTER_OR_DIGIT, (letter) => URDU_LETTERS[letter] ?? digitOf(letter))
    .replace(/\s+/g, ' ')
    .trim()
}

function digitOf(letter: string): string {
  return String((letter.codePointAt(0) ?? 0) & 0xf)
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
