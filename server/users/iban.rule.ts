export type IbanCheck = { ok: true; iban: string } | { ok: false; message: string }

/** Pakistan's form in the SWIFT IBAN registry: check digits, four letters of the bank, sixteen characters of the account. */
const PAKISTANI_IBAN = /^PK\d{2}[A-Z]{4}[A-Z0-9]{16}$/i

/**
 * Checks a Pakistani IBAN (ISO 13616, mod 97) and answers it in its electronic form: upper case, no spaces, 24 characters.
 * Spaces and small letters are accepted as people type them. The message completes "iban ...".
 */
export function checkIban(text: string): IbanCheck {
  const compact = text.replace(/\s/g, '')
  // Before upper-casing: some foreign letters have a plain A to Z as their capital.
  if (!PAKISTANI_IBAN.test(compact)) {
    return {
      ok: false,
      message: 'must be a Pakistani IBAN: PK, two digits, four letters and sixteen letters or digits',
    }
  }
  const iban = compact.toUpperCase()
  const checkDigits = Number(iban.slice(2, 4))
  // Check digits are 98 less a remainder of 97, so 00, 01 and 99 are never issued though they could pass the division.
  if (checkDigits < 2 || checkDigits > 98 || remainderOf97(iban) !== 1) {
    return { ok: false, message: 'has wrong check digits: please compare it with your bank statement' }
  }
  return { ok: true, iban }
}

/** The last four characters, which are all that is ever shown of a stored IBAN. */
export function ibanLast4(iban: string): string {
  return iban.slice(-4)
}

/** ISO 7064 mod 97-10: country and check digits at the end, letters as 10 to 35. */
function remainderOf97(iban: string): number {
  let remainder = 0
  for (const character of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
  return remainder
}
