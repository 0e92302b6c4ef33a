/*
 * How texts are compared, the same on both databases: their own folding knows ASCII only (SQLite) or depends on the
 * server's locale (PostgreSQL), and their own parsers disagree on hyphens, numbers, Urdu and emoji. What is stored folded
 * must be folded anew by a migration when a rule here changes.
 */

/** Keys go into indexes, where PostgreSQL takes 2,700 bytes for all columns together. */
const LONGEST_KEY = 120
const LONGEST_WORD = 40

/** Vowel and other signs that are written or left out at will in Latin and Arabic script. */
const OPTIONAL_SIGNS =
  /[\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]/g
/** What shows as nothing or as a mere stretch: joiners, directions, variation selectors, tatweel, apostrophes. */
const UNSEEN = /\p{Cf}|\p{Variation_Selector}|[\u0640'\u2019\u02bc]/gu
/** Letters that Arabic and Urdu keyboards give different codes. */
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

/** The text in one spelling: no case, no optional signs, one code for each letter and digit, single spaces. */
function fold(text: string): string {
  return text
    .toWellFormed()
    .toLowerCase()
    .normalize('NFKD')
    .toLowerCase()
    .replace(OPTIONAL_SIGNS, '')
    .replace(UNSEEN, '')
    .normalize('NFC')
    .replace(ARABIC_LETTER_OR_DIGIT, (letter) => URDU_LETTERS[letter] ?? digitOf(letter))
    .replace(/\s+/g, ' ')
    .trim()
}

function digitOf(letter: string): string {
  return String((letter.codePointAt(0) ?? 0) & 0xf)
}

/** What two names have in common when they differ only in case or spelling; at most 120 characters. */
export function foldedKey(text: string): string {
  return [...fold(text)].slice(0, LONGEST_KEY).join('')
}

/** The different words of a text in the order of their first use, each at most 40 characters; none hold punctuation. */
export function foldedWords(text: string): string[] {
  const words = fold(text).match(WORD) ?? []
  return [...new Set(words.map((word) => [...word].slice(0, LONGEST_WORD).join('')))]
}
