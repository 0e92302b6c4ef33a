/** Fractions of whole numbers, so that nothing is ever rounded on the way. */

/** `numerator ÷ denominator`, half up; both are not below zero. */
export function halfUp(numerator: bigint, denominator: bigint): number {
  const whole = numerator / denominator
  const rest = numerator % denominator
  return Number(rest * 2n >= denominator ? whole + 1n : whole)
}

/** `amount × parts ÷ whole`, half up to the paisa. */
export function share(amount: number, parts: number, whole: number): number {
  return halfUp(BigInt(amount) * BigInt(parts), BigInt(whole))
}

/** An exact amount of paisa: `over ÷ under`. */
export interface Fraction {
  over: bigint
  under: bigint
}

export const NONE: Fraction = { over: 0n, under: 1n }

/** A decimal text such as `1250.005` in paisa; `null` for what is no plain amount from zero on. */
export function fractionOf(text: unknown): Fraction | null {
  if (typeof text !== 'string' || !/^[0-9]+(\.[0-9]+)?$/.test(text)) return null
  const [rupees = '0', fraction = ''] = text.split('.')
  return { over: BigInt(rupees + fraction) * 100n, under: 10n ** BigInt(fraction.length) }
}

export function plus(one: Fraction, other: Fraction): Fraction {
  return { over: one.over * other.under + other.over * one.under, under: one.under * other.under }
}

/** `amount × parts ÷ whole`, half up to the paisa. */
export function shareOf(amount: Fraction, parts: number, whole: number): number {
  return halfUp(amount.over * BigInt(parts), amount.under * BigInt(whole))
}

/** Paisa for people and for the books' rows: `1250.00`. */
export function rupees(paisa: number): string {
  const digits = String(Math.abs(paisa)).padStart(3, '0')
  return `${paisa < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
}
