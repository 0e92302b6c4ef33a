import type { SaleExplanation, SalePayout } from '../../../server/sales/sale-explanation.service.ts'
import { displayLineAmount } from '../../../shared/line-amount.ts'
import { displayMoney } from '../../../shared/money.ts'
import { basisPointsToPercent } from '../../../shared/rates.ts'
import type { Output } from '../../terminal/output.ts'
import { checkLines } from './sale-checks.ts'

/** The story of a sale as one would tell it to its merchant. */
export function storyLines(story: SaleExplanation, out: Output): string[] {
  return [
    ...verdictLines(story, out),
    '',
    out.heading('How it came about'),
    ...eventLines(story, out),
    '',
    out.heading('Checks'),
    `  By version ${story.decision.rule_version} of the rule; the first that does not hold rejects the sale.`,
    ...checkLines(story.decision, out),
    '',
    out.heading('What commission is taken of'),
    ...basisLines(story, out),
    '',
    out.heading('What came of it'),
    ...moneyLines(story, out),
  ]
}

function verdictLines(story: SaleExplanation, out: Output): string[] {
  const { decision } = story
  const order = `Order ${story.orderName ?? story.orderId} (${story.orderId}) of ${story.store.shopDomain ?? story.store.id}, merchant ${nameOf(story.merchant)}`
  if (decision.acceptance_status === 'rejected') {
    return [order, out.style('red', `REJECTED: ${decision.rejection_reason}`)]
  }
  const paid = `commission ${displayMoney(decision.commission)} to ${story.creator ? nameOf(story.creator) : '–'}, platform fee ${displayMoney(decision.platform_fee)}`
  return [order, out.style('green', `ACCEPTED: ${paid}`)]
}

function nameOf({ displayName, email, id }: SaleExplanation['merchant']): string {
  return displayName ? `${displayName} <${email ?? id}>` : id
}

const SOURCE_WORDS: Record<SaleExplanation['source'], string> = {
  cart: 'its reference comes from a cart attribute',
  line: 'its reference comes from a line property (buy now)',
  landing: 'its reference comes from the landing page',
  coupon: 'its link comes from a coupon code',
  none: 'it carries no reference',
}

function eventLines(story: SaleExplanation, out: Output): string[] {
  const { click, coupon, link } = story
  const timeline: [number, string][] = []
  if (link) {
    const products = link.product_ids?.length ? `products ${link.product_ids.join(', ')}` : 'every product'
    const window = coupon ? '' : `, for orders within ${link.attribution_window_days} days of the click`
    const terms = `${basisPointsToPercent(link.commission_rate)} % on ${products}${window}`
    const offer = story.offer?.title ? `"${story.offer.title}"` : `offer ${link.offer_id}`
    const creator = story.creator ? nameOf(story.creator) : link.creator_id
    timeline.push([
      link.locked_at,
      `The merchant approved ${creator} for ${offer}; link ${link.slug} locked ${terms}.`,
    ])
  }
  if (coupon)
    timeline.push([coupon.starts_at, `Link ${coupon.link.slug} got the coupon code ${coupon.code}.`])
  if (click) {
    const unused = coupon ? '; the coupon code comes before it' : ''
    timeline.push([
      click.created_at,
      `A visitor followed /go/${click.link.slug}: click ${click.id}${click.tracked ? '' : ' (untracked)'}${unused}.`,
    ])
  }
  const source = coupon ? `its link comes from the coupon code ${coupon.code}` : SOURCE_WORDS[story.source]
  timeline.push([story.orderedAt, `The order was placed in the store; ${source}.`])
  for (const former of story.formerDecisions) {
    const reason = former.decision.rejection_reason
    timeline.push([
      former.decidedAt,
      `The store had reported it as unpaid, and it was rejected as ${reason} (event ${former.eventId}).`,
    ])
  }
  const again = story.formerDecisions.length > 0 ? ' again' : ''
  timeline.push([
    story.decidedAt,
    story.origin === 'operator'
      ? `An operator sent it in the store's name, and it was decided${again} (event ${story.eventId}).`
      : `The store had reported it as paid, and it was decided${again} (event ${story.eventId}).`,
  ])
  // Stores write whole seconds: within one, an order does not come before its click.
  const second = (moment: number) => Math.floor(moment / 1000)
  timeline.sort(([one], [other]) => second(one) - second(other))
  const lines = timeline.map(([moment, text]) => `  ${out.time(moment)}  ${text}`)
  if (link) return lines
  return [...lines, '  The order led to no click on a link of this merchant and has no coupon code in force.']
}

function basisLines({ decision }: SaleExplanation, out: Output): string[] {
  const money = (title: string) => ({ title, right: true })
  const table = out.table(
    [
      { title: 'Line', flexible: true },
      money('Pieces'),
      money('Price'),
      money('Discount'),
      money('Tax'),
      money('Net'),
      { title: 'Counts' },
    ],
    decision.basis_lines.map((line) => [
      line.title || (line.product_id ?? '–'),
      String(line.quantity),
      displayLineAmount(line.unit_price),
      displayMoney(line.discount),
      displayMoney(line.tax),
      displayMoney(line.net),
      line.counted ? 'yes' : line.why_not === 'gift_card' ? 'no: gift card' : 'no: not in the offer',
    ]),
  )
  const rate =
    decision.commission_rate === null ? null : `${basisPointsToPercent(decision.commission_rate)} %`
  const accepted = decision.acceptance_status === 'accepted'
  const feeRate = `${basisPointsToPercent(decision.platform_fee_rate)} %`
  const net = displayMoney(decision.net_amount)
  return [
    ...(decision.basis_lines.length > 0
      ? table
      : ['  The order is not in PKR, so none of its amounts count.']),
    '',
    `  Basis         ${net}`,
    ...(accepted
      ? [
          `  Commission    ${displayMoney(decision.commission)} (${rate} of ${net}, half up to the paisa)`,
          `  Platform fee  ${displayMoney(decision.platform_fee)} (${feeRate} of the commission, billed on top)`,
        ]
      : ['  Commission    none, since the sale is rejected']),
  ]
}

function moneyLines(story: SaleExplanation, out: Output): string[] {
  const { cycle } = story
  if (!cycle) return ['  Nothing is billed and nothing is paid for a rejected sale.']
  const period = `${out.time(cycle.period_start)} to ${out.time(cycle.period_end)}`
  const lines = [`  Billing cycle ${cycle.id} (${period}) is ${cycle.state}.`]
  if (cycle.state === 'open')
    return [...lines, '  It is billed when the cycle closes; the creator waits for its payment.']
  const credit = cycle.credit_total > 0 ? ` after a credit of ${displayMoney(cycle.credit_total)}` : ''
  lines.push(
    `  Closed ${out.time(cycle.closed_at)}: ${displayMoney(cycle.amount_due)} due for the whole cycle${credit}.`,
  )
  if (cycle.processor_invoice_id) lines.push(`  Invoice ${cycle.processor_invoice_id} at the processor.`)
  else lines.push(`  No invoice yet${cycle.invoiceProblem ? `: ${cycle.invoiceProblem}` : ''}.`)
  if (cycle.state === 'closed') return [...lines, '  The merchant has not paid it yet.']
  lines.push(`  Paid ${out.time(cycle.charged_at)}, payment ${cycle.processor_payment_reference}.`)
  lines.push(`  That released ${displayMoney(cycle.creatorShare)} to the creator for this cycle.`)
  return [...lines, ...payoutLines(story.payouts, out)]
}

function payoutLines(payouts: readonly SalePayout[], out: Output): string[] {
  const lines = payouts.map((payout, index) => {
    const { id, amount, state, createdAt, settledAt, failureReason, processorPayoutId } = payout
    const end = {
      pending: 'is about to be sent to the processor',
      submitted: 'is with the processor',
      paid: `was paid ${out.time(settledAt)}`,
      failed: `failed ${out.time(settledAt)}: ${failureReason ?? 'no reason given'}; its amount went back into the balance`,
    }[state]
    const instead = payouts[index - 1]?.state === 'failed' ? ' in place of the failed one' : ''
    const there = processorPayoutId ? ` (${processorPayoutId} at the processor)` : ''
    return `  Payout ${id}${there} of ${displayMoney(amount)}, made ${out.time(createdAt)}${instead}, ${end}.`
  })
  const waiting = payouts.every((payout) => payout.state === 'failed')
  return waiting
    ? [...lines, '  It goes out with the next payout run that the creator qualifies for.']
    : lines
}
