import { assertPaisa, type Paisa } from './money.ts'

/**
 * A rate inside the service is an integer count of basis points (1/100 percent): `1250` is 12.5 %.
 * On the wire it is percent as a JSON number with at most two decimals: `12.5`.
 */
export type BasisPoints = number

/**
 * Percent with at most two decimals → basis points; `null` when it has more decimals or is no number that can be exact.
 * The comparison needs no tolerance: a quotient by 100 and the decimal that people write are the same nearest double.
 */
export function percentToBasisPoints(percent: number): BasisPoints | null {
  const basisPoints = Math.round(percent * 100)
  if (!Number.isSafeInteger(basisPoints) || basisPoints / 100 !== percent) return null
  return basisPoints === 0 ? 0 : basisPoints
}

/** Basis points → percent: `1250` → `12.5`. */
export function basisPointsToPercent(rate: BasisPoints): number {
  return rate / 100
}

/**
 * `amount × rate`, half up to the paisa. Amounts below zero are refused: nothing in the service takes a rate of a debt.
 * The product is taken in BigInt because it leaves the range of exact numbers long before the amount does.
 */
export function rateOf(amount: Paisa, rate: BasisPoints): Paisa {
  assertPaisa(amount)
  if (amount < 0 || !Number.isInteger(rate) || rate < 0) throw new Error(`no rate of ${amount} at ${rate}`)
  const result = Number((BigInt(amount) * BigInt(rate) + 5000n) / 10000n)
  assertPaisa(result)
  return result
}
