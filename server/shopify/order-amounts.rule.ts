import { type LineAmount, timesRounded } from '../../shared/line-amount.ts'
import type { Paisa } from '../../shared/money.ts'

/** The amounts of an order line; `discount` is of the pieces as ordered, `quantity` counts those that are left. */
interface Priced {
  unit_price: LineAmount
  discount: LineAmount
  quantity: number
  original_quantity: number
}

/** The price of a line as it was ordered, after its discount. */
export function orderedAmount({ unit_price, original_quantity, discount }: Priced): Paisa {
  return Math.max(0, timesRounded(unit_price, original_quantity) - timesRounded(discount, 1))
}

/** The price of the pieces that are left, after their share of the discount. */
export function currentAmount(line: Priced): Paisa {
  return Math.max(0, timesRounded(line.unit_price, line.quantity) - shareOfRemaining(line.discount, line))
}

/**
 * The share of a line's discount or tax for its remaining pieces: `total × quantity ÷ original quantity`, rounded half up to the
 * paisa. Pieces added by an edit do not increase it.
 */
export function shareOfRemaining(
  total: LineAmount,
  line: Pick<Priced, 'quantity' | 'original_quantity'>,
): Paisa {
  const { quantity, original_quantity } = line
  return quantity >= original_quantity
    ? timesRounded(total, 1)
    : timesRounded(total, quantity, original_quantity)
}
