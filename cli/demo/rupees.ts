import { displayMoney, type Paisa } from '../../shared/money.ts'

/** An amount in a column of amounts: `1,309.90`. */
export function rupees(amount: Paisa): string {
  return displayMoney(amount).replace('Rs ', '')
}

/** A sum with its parts: `= 315.00 + 349.90`. */
export function addition(amounts: readonly Paisa[]): string {
  return `= ${amounts.map(rupees).join(' + ')}`
}

export function sum(amounts: readonly Paisa[]): Paisa {
  return amounts.reduce((total, amount) => total + amount, 0)
}
