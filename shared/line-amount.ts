import { displayMoney, formatMoney, type Paisa } from './money.ts'

/**
 * An exact amount of an order line, in hundredths of its currency: a number when it is whole, otherwise a decimal text such as `"100.5"`.
 * Prices can have more than two places, and are rounded only after they are multiplied.
 */
export type LineAmount = Paisa | string

/** Shopify's amounts have at most 20 places here, so 18 of a paisa. */
const PLACES = 18
const SCALE = 10n ** BigInt(PLACES)

/** A decimal text in rupees, already checked, as an exact amount. */
export function exactAmount(whole: string, fraction: string): LineAmount {
  const paisa = Number(whole) * 100 + Number(fraction.slice(0, 2).padEnd(2, '0'))
  const rest = fraction.slice(2).replace(/0+$/, '')
  return rest === '' ? paisa : `${paisa}.${rest}`
}

export function sumOfAmounts(amounts: readonly LineAmount[]): LineAmount {
  if (amounts.every((amount) => amount === 0)) return 0
  const sum = amounts.reduce((total, amount) => total + scaled(amount), 0n)
  const rest = String(sum % SCALE)
    .padStart(PLACES, '0')
    .replace(/0+$/, '')
  return rest === '' ? Number(sum / SCALE) : `${sum / SCALE}.${rest}`
}

/** `amount × pieces ÷ of`, rounded once, half up to the paisa. */
export function timesRounded(amount: LineAmount, pieces: number, of = 1): Paisa {
  // A product that is a safe integer is exact.
  if (of === 1 && typeof amount === 'number' && Number.isSafeInteger(amount * pieces)) return amount * pieces
  const divisor = SCALE * BigInt(of)
  return Number((2n * scaled(amount) * BigInt(pieces) + divisor) / (2n * divisor))
}

/** In rupees with at least two places: `1005` → `"10.05"`, `"100.5"` → `"1.005"`. */
export function formatLineAmount(amount: LineAmount): string {
  return withPlaces(amount, formatMoney)
}

/** As people read it: `Rs 1,250.005`. */
export function displayLineAmount(amount: LineAmount): string {
  return withPlaces(amount, displayMoney)
}

function withPlaces(amount: LineAmount, format: (paisa: Paisa) => string): string {
  const [paisa, rest = ''] = String(amount).split('.')
  return format(Number(paisa)) + rest
}

function scaled(amount: LineAmount): bigint {
  const [whole = '0', rest = ''] = String(amount).split('.')
  return BigInt(whole + rest.padEnd(PLACES, '0'))
}
