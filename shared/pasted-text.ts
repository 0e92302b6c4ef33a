/** What cannot be seen: direction marks and isolates, zero-width characters, soft hyphens, variation selectors. */
const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu

/** A text without the characters that chat programs and PDF files put into what people copy. */
export function withoutInvisible(text: string): string {
  return text.replace(INVISIBLE, '')
}

/** The digits of Arabic (U+0660 to U+0669) and of Urdu and Persian (U+06F0 to U+06F9). */
const EASTERN_DIGIT = /[\u0660-\u0669\u06f0-\u06f9]/g

/** A text with Arabic and Urdu digits as 0 to 9. */
export function withPlainDigits(text: string): string {
  return text.replace(EASTERN_DIGIT, (digit) => String(digit.charCodeAt(0) & 0xf))
}
