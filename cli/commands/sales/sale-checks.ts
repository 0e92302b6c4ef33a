import type { SaleDecision } from '../../../server/sales/accept-sale.rule.ts'
import { displayMoney, type Output } from '../../terminal/output.ts'

type Check = SaleDecision['checks'][number]

/** What each check asks, as a sentence that holds when it passes. */
const SENTENCES: Record<Check['name'], string> = {
  test_order: 'The order is no test',
  not_paid: 'It is paid and not cancelled',
  currency_not_pkr: 'It is in PKR',
  no_tracking_reference: 'It carries a tracking reference',
  coupon_not_in_force: 'Its coupon code was in force',
  unknown_tracking_reference: 'The reference is a click that we logged',
  other_merchants_link: 'The link is of this merchant',
  untracked_click: 'The click was tracked',
  click_after_order: 'The click came before the order',
  outside_attribution_window: 'The order came within the attribution window',
  creator_suspended: 'The creator was not suspended',
  merchant_suspended: 'The merchant was not suspended',
  self_purchase: 'The buyer was not the creator',
  product_not_in_offer: 'A product of the offer was ordered',
  nothing_payable: 'There is something to pay',
}

const VERDICTS = { passed: 'yes', failed: 'NO', not_applicable: 'not asked' } as const

/** Every check with its verdict and what it saw. */
export function checkLines(decision: SaleDecision, out: Output): string[] {
  return out.table(
    [{ title: 'Check' }, { title: 'Holds' }, { title: 'Saw', flexible: true }, { title: 'Code' }],
    decision.checks.map((check) => [
      SENTENCES[check.name],
      VERDICTS[check.verdict],
      Object.entries(check.saw)
        .map(([name, value]) => sawText(name, value, out))
        .join(', '),
      check.name,
    ]),
  )
}

function sawText(name: string, value: Check['saw'][string], out: Output): string {
  const words = name.replaceAll('_', ' ')
  if (typeof value === 'number' && name.endsWith('_at')) return `${words} ${out.time(value)}`
  if (typeof value === 'number' && name.endsWith('_ms')) {
    return `${words.replace(/ ms$/, '')} ${value / 60_000} minutes`
  }
  if (typeof value === 'number' && (name === 'net_amount' || name === 'commission')) {
    return `${words} ${displayMoney(value)}`
  }
  if (typeof value === 'boolean') return `${words}: ${value ? 'yes' : 'no'}`
  return `${words} ${value ?? 'none'}`
}
