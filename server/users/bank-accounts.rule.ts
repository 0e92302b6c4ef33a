import { withoutInvisible, withPlainDigits } from '../../shared/pasted-text.ts'

/** An account in the form in which it is kept, or what is wrong with it, to complete "iban ..." and "raast_id ...". */
type AccountCheck = { ok: true; text: string } | { ok: false; message: string }

/** What banks, chat programs and people put between the groups: spaces, any hyphen or dash, brackets, dots, and signs of quotation and emphasis. */
const SEPARATORS = /[\s\p{Pd}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\u2212.,;،؛۔·•/'"*_~`]/gu
/** A label before the account, such as "IBAN: ", "Account no. (IBAN): " or "tel:". One with a digit could be another account. */
const LABEL = /^[^\d:]{0,40}:/
const IBAN_WITHOUT_COLON = /^IBAN(?=PK)/i

/** An account as it was pasted, with letters, digits and a plus sign only. */
function compactOf(pasted: string): string {
  const plain = withPlainDigits(withoutInvisible(pasted)).replaceAll('：', ':')
  return plain.replace(LABEL, '').replace(SEPARATORS, '')
}

/** Pakistan's form in the SWIFT IBAN registry: check digits, four letters of the bank, sixteen characters of the account. */
const PAKISTANI_IBAN = /^PK\d{2}[A-Z]{4}[A-Z0-9]{16}$/i

/**
 * Checks a Pakistani IBAN (ISO 13616, mod 97) as people paste it and answers it in its electronic form: upper case, no spaces, 24
 * characters.
 */
export function checkIban(pasted: string): AccountCheck {
  const compact = compactOf(pasted).replace(IBAN_WITHOUT_COLON, '')
  // Before upper-casing: some foreign letters have a plain A to Z as their capital.
  if (!PAKISTANI_IBAN.test(compact)) {
    return {
      ok: false,
      message: 'must be a Pakistani IBAN: PK, two digits, four letters and sixteen letters or digits',
    }
  }
  const text = compact.toUpperCase()
  const checkDigits = Number(text.slice(2, 4))
  // Check digits are 98 less a remainder of 97, so 00, 01 and 99 are never issued though they could pass the division.
  if (checkDigits < 2 || checkDigits > 98 || remainderOf97(text) !== 1) {
    return { ok: false, message: 'has wrong check digits: please compare it with your bank statement' }
  }
  return { ok: true, text }
}

/** The last four characters, which are all that is ever shown of a stored account. */
export function last4Of(account: string): string {
  return account.slice(-4)
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

/** A Pakistani mobile number after its prefix: 3 and nine digits. `+92 (0)300` names both prefixes. */
const MOBILE_NUMBER = /^(?:(?:\+|00)?920?|0)?(3\d{9})$/

/**
 * Checks a Raast ID, which is the mobile number that its owner linked to an account, as people paste it and answers it in national form:
 * 03001234567.
 */
export function checkRaastId(pasted: string): AccountCheck {
  const [, number] = MOBILE_NUMBER.exec(compactOf(pasted)) ?? []
  if (number !== undefined) return { ok: true, text: `0${number}` }
  return { ok: false, message: 'must be a Pakistani mobile number, such as 03001234567 or +92 300 1234567' }
}
