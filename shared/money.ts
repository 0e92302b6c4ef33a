/**
 * Money inside the service is an integer count of paisa (1/100 rupee), always PKR, never a float.
 * On the wire it is a decimal string with exactly two places, e.g. `"1250.00"`.
 */
export type Paisa = number

export const CURRENCY = 'PKR'

const WIRE_AMOUNT = /^(-?)(\d{1,13})(?:\.(\d{1,2}))?$/

/** Paisa as the wire's decimal string: `125000` → `"1250.00"`, `-5` → `"-0.05"`. A bigint is an amount that no sum accepts. */
export function formatMoney(amount: Paisa | bigint): string {
  if (typeof amount !== 'bigint') assertPaisa(amount)
  const digits = String(amount).replace('-', '').padStart(3, '0')
  return `${amount < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
}

/**
 * Reads a decimal string with at most two places (`"1250"`, `"1250.5"`, `"1250.50"`).
 * Answers `null` for anything else, so that each edge words its own refusal.
 */
export function parseMoney(text: string): Paisa | null {
  const match = WIRE_AMOUNT.exec(text)
  if (!match) return null
  const [, sign, rupees, fraction = ''] = match
  const paisa = Number(rupees) * 100 + Number(fraction.padEnd(2, '0'))
  return sign && paisa !== 0 ? -paisa : paisa
}

/** Money as people read it: `Rs 12,500.00`. */
export function displayMoney(amount: Paisa | bigint): string {
  const [rupees = '0', fraction] = formatMoney(amount).replace('-', '').split('.')
  return `${amount < 0 ? '-' : ''}Rs ${rupees.replace(/\B(?=(\d{3})+$)/g, ',')}.${fraction}`
}

/** Throws on a value that is no exact whole number of paisa: such a value is a bug, not an input error. */
export function assertPaisa(amount: number): asserts amount is Paisa {
  if (!Number.isSafeInteger(amount)) throw new Error(`not an exact amount of paisa: ${amount}`)
}
