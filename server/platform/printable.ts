/**
 * Controls, line breaks, lone surrogates and characters that show nothing: bidi controls, zero-width characters, tags. A joiner
 * between letters (Urdu) or emoji and an emoji's variation selector stay.
 */
export const UNPRINTABLE =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\ufff9-\ufffb]|(?!\ufe0f|(?<=(?![\0-\x7f])[\p{L}\p{M}\p{So}\p{Emoji_Modifier}])[\u200c\u200d])\p{DI}/gu

/** The text with a replacement character for each that could steer the terminal, break the line or hide. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '\ufffd')
}
