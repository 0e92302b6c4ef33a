import type { ExplainedPendingOrder } from '../../server/pending-orders/pending-orders.service.ts'
import type { SaleExplanation } from '../../server/sales/sale-explanation.service.ts'
import { rateSource, wireLine, wireSaleCycle } from '../../server/sales/sale-wire.ts'
import { displayLineAmount } from '../../shared/line-amount.ts'
import { CURRENCY } from '../../shared/money.ts'
import { type BasisPoints, basisPointsToPercent } from '../../shared/rates.ts'
import { counted, displayMoney, formatMoney, type Output, wireTime } from '../terminal/output.ts'
import { money } from '../terminal/table.ts'
import { pendingDocument, pendingMoments } from './pending-orders.actions.ts'

/** The story of a sale for `--json`, in the wire's words: rupees, percent, RFC 3339. */
export function explanationDocument(story: SaleExplanation, pending: ExplainedPendingOrder | null) {
  const { sale, click, coupon, link, cycle } = story
  const { decision } = story.receipt
  return {
    sale_id: sale.id,
    event_id: sale.event_id,
    event_origin: story.origin,
    order_id: sale.order_id,
    order_name: sale.order_name,
    acceptance_status: decision.acceptance_status,
    rejection_reason: decision.rejection_reason,
    attributed_by: coupon ? 'coupon' : link ? 'click' : null,
    tracked_by: story.source,
    rule_version: decision.rule_version,
    ordered_at: wireTime(sale.ordered_at),
    decided_at: wireTime(story.decidedAt),
    pending_order: pending && pendingDocument(pending),
    former_decisions: story.formerDecisions.map(
      ({ decided_at, event_id, receipt: { decision: former } }) => ({
        decided_at: wireTime(decided_at),
        event_id,
        acceptance_status: former.acceptance_status,
        rejection_reason: former.rejection_reason,
        rule_version: former.rule_version,
        checks: former.checks,
        net_amount: formatMoney(former.net_amount),
      }),
    ),
    store: sale.store,
    merchant: party(story.merchant),
    creator: story.creator && party(story.creator),
    offer: sale.offer,
    click: click && { id: click.id, created_at: wireTime(click.created_at), tracked: click.tracked },
    coupon: coupon && {
      code: coupon.code,
      starts_at: wireTime(coupon.starts_at),
      ends_at: wireTime(coupon.ends_at),
    },
    link: link && {
      id: link.id,
      slug: link.slug,
      commission_rate: basisPointsToPercent(link.commission_rate),
      ...rateSource(link),
      attribution_window_days: link.attribution_window_days,
      product_ids: link.product_ids,
      locked_at: wireTime(link.locked_at),
    },
    checks: decision.checks,
    basis_lines: decision.basis_lines.map(wireLine),
    net_amount: formatMoney(decision.net_amount),
    commission_rate: percent(decision.commission_rate),
    commission: formatMoney(decision.commission),
    platform_fee_rate: basisPointsToPercent(decision.platform_fee_rate),
    platform_fee: formatMoney(decision.platform_fee),
    currency: CURRENCY,
    credit_request: story.creditRequest,
    billing_cycle: cycle && {
      ...wireSaleCycle(cycle, 'merchant'),
      invoice_problem: cycle.invoiceProblem,
      released_at: wireTime(cycle.releasedAt),
    },
    payouts: story.payouts.map((payout) => ({
      id: payout.id,
      state: payout.state,
      amount: formatMoney(payout.amount),
      processor_payout_id: payout.processor_payout_id,
      failure_reason: payout.failure_reason,
      created_at: wireTime(payout.created_at),
      settled_at: wireTime(payout.settled_at),
    })),
  }
}

function party({ id, display_name, email }: SaleExplanation['merchant']) {
  return { id, email, display_name }
}

function percent(rate: BasisPoints | null): number | null {
  return rate === null ? null : basisPointsToPercent(rate)
}

/** The story of a sale as one would tell it to its merchant; with `all`, every check with what it saw. */
export function explanationLines(
  story: SaleExplanation,
  pending: ExplainedPendingOrder | null,
  out: Output,
  all: boolean,
): string[] {
  const { sale, creator, receipt } = story
  const { decision } = receipt
  const paid = `commission ${displayMoney(decision.commission)} to ${creator ? nameOf(creator) : '–'}, platform fee ${displayMoney(decision.platform_fee)}`
  const lines = [
    `Order ${sale.order_name ?? sale.order_id} (${sale.order_id}) of ${sale.store.shop_domain}, merchant ${nameOf(story.merchant)}`,
    decision.acceptance_status === 'rejected'
      ? out.style('red', `REJECTED: ${decision.rejection_reason}`)
      : out.style('green', `ACCEPTED: ${paid}`),
    '',
    out.heading('How it came about'),
    ...eventLines(story, pending, out),
    '',
    out.heading('Checks'),
    ...checkLines(decision, out, all),
    '',
    out.heading('Calculation'),
    ...basisLines(receipt, out),
    '',
    out.heading('Billing and payout'),
    ...moneyLines(story, out),
  ]
  return lines.map((line) => out.shortIds(line))
}

function nameOf({ display_name, email }: SaleExplanation['merchant']): string {
  return `${display_name} <${email}>`
}

const SOURCE_WORDS: Record<SaleExplanation['source'], string> = {
  cart: 'its reference comes from a cart attribute',
  line: 'its reference comes from a line property (buy now)',
  landing: 'its reference comes from the landing page',
  coupon: 'its link comes from a coupon code',
  none: 'it carries no reference',
}

function eventLines(story: SaleExplanation, pending: ExplainedPendingOrder | null, out: Output): string[] {
  const { sale, click, coupon, link } = story
  const timeline: [number, string][] = []
  if (link) {
    const products = link.product_ids?.length ? `products ${link.product_ids.join(', ')}` : 'every product'
    const window = coupon ? '' : `, for orders within ${link.attribution_window_days} days of the click`
    const { rate_source, offer_commission_rate } = rateSource(link)
    const why =
      rate_source === 'individual' ? ` (for this creator; the offer's was ${offer_commission_rate} %)` : ''
    const terms = `${basisPointsToPercent(link.commission_rate)} %${why} on ${products}${window}`
    const offer = sale.offer?.title ? `"${sale.offer.title}"` : `offer ${link.offer_id}`
    const creator = story.creator ? nameOf(story.creator) : link.creator_id
    const text = `The merchant approved ${creator} for ${offer}; link ${link.slug} locked ${terms}.`
    timeline.push([link.locked_at, text])
  }
  if (coupon) {
    timeline.push([coupon.starts_at, `Link ${coupon.link.slug} got the coupon code ${coupon.code}.`])
  }
  if (click) {
    const notes = `${click.tracked ? '' : ' (untracked)'}${coupon ? '; the coupon code comes before it' : ''}`
    const text = `A visitor followed /go/${click.link.slug}: click ${click.id}${notes}.`
    timeline.push([click.created_at, text])
  }
  const source = coupon ? `its link comes from the coupon code ${coupon.code}` : SOURCE_WORDS[story.source]
  timeline.push([sale.ordered_at, `The order was placed in the store; ${source}.`])
  // Where the payment was reported first, the placement says nothing.
  if (pending && pending.created_at < story.decidedAt) timeline.push(...pendingMoments(pending))
  for (const { decided_at, event_id, receipt } of story.formerDecisions) {
    const why = `it was rejected as ${receipt.decision.rejection_reason} (event ${event_id})`
    timeline.push([decided_at, `The store had reported it as unpaid, and ${why}.`])
  }
  const sender =
    story.origin === 'operator'
      ? "An operator sent it in the store's name"
      : 'The store had reported it as paid'
  const again = story.formerDecisions.length > 0 ? ' again' : ''
  timeline.push([story.decidedAt, `${sender}, and it was decided${again} (event ${sale.event_id}).`])
  // Stores write whole seconds: within one, an order does not come before its click.
  const second = (moment: number) => Math.floor(moment / 1000)
  timeline.sort(([one], [other]) => second(one) - second(other))
  const lines = timeline.map(([moment, text]) => `  ${out.shortTime(moment)}  ${text}`)
  if (link) return lines
  return [...lines, '  The order led to no click on a link of this merchant and has no coupon code in force.']
}

type BasisLine = SaleExplanation['receipt']['decision']['basis_lines'][number]

const NOT_COUNTED: Record<NonNullable<BasisLine['why_not']>, string> = {
  gift_card: 'no: gift card',
  tip: 'no: tip',
  fee: 'no: fee',
  other_product: 'no: not in the offer',
}

function lineName({ quantity, title, product_id }: BasisLine): string {
  const name = title || product_id || '–'
  return quantity === 1 ? name : `${quantity} × ${name}`
}

function basisLines({ facts, decision }: SaleExplanation['receipt'], out: Output): string[] {
  const table = out.table(decision.basis_lines, [
    { title: 'Line', flexible: true, least: 12, cell: lineName },
    { title: 'Price', right: true, cell: (line) => displayLineAmount(line.unit_price) },
    money('Discount', (line) => line.discount),
    ...(decision.basis_lines.some((line) => line.refunded !== undefined)
      ? [money<BasisLine>('Refunded', (line) => line.refunded ?? 0)]
      : []),
    money('Tax', (line) => line.tax),
    money('Net', (line) => line.net),
    {
      title: 'Counts',
      flexible: true,
      least: 10,
      cell: (line) => (line.why_not === null ? 'yes' : NOT_COUNTED[line.why_not]),
    },
  ])
  const rate = percent(decision.commission_rate)
  const feeRate = percent(decision.platform_fee_rate)
  const net = displayMoney(decision.net_amount)
  return [
    ...(decision.basis_lines.length > 0
      ? table
      : ['  The order is not in PKR, so none of its amounts count.']),
    ...amountNotes(facts.order),
    `  Basis         ${net}`,
    ...(decision.acceptance_status === 'accepted'
      ? [
          `  Commission    ${displayMoney(decision.commission)} (${rate} % of ${net}, half up to the paisa)`,
          `  Platform fee  ${displayMoney(decision.platform_fee)} (${feeRate} % of the commission, billed on top)`,
        ]
      : ['  Commission    none, since the sale is rejected']),
  ]
}

function amountNotes({
  discount_spread,
  amount_refunded,
  unclear,
}: SaleExplanation['receipt']['facts']['order']) {
  const notes: string[] = []
  if (discount_spread !== undefined)
    notes.push(`  No line carried ${displayMoney(discount_spread)} of the discounts: spread over all lines.`)
  if (amount_refunded !== undefined)
    notes.push(
      `  ${displayMoney(amount_refunded)} was refunded without naming items: deducted from all lines in proportion.`,
    )
  return unclear
    ? [...notes, `  The order does not tell: ${unclear.join(', ')}. An operator was asked to look.`]
    : notes
}

function moneyLines(story: SaleExplanation, out: Output): string[] {
  const { cycle, creditRequest: request } = story
  if (!cycle) return ['  Nothing is billed and nothing is paid for a rejected sale.']
  const period = `${out.shortTime(cycle.period_start)} to ${out.shortTime(cycle.period_end)}`
  const lines = [`  Billing cycle ${cycle.id} (${period}) is ${cycle.state}.`]
  if (request)
    lines.push(`  The merchant's request for a credit of Rs ${request.amount} is ${request.status}.`)
  if (cycle.state === 'open')
    return [...lines, '  It is billed when the cycle closes; the creator waits for its payment.']
  const credit = cycle.credit_total > 0 ? ` after a credit of ${displayMoney(cycle.credit_total)}` : ''
  lines.push(
    `  Closed ${out.shortTime(cycle.closed_at)}: ${displayMoney(cycle.amount_due)} due for the whole cycle${credit}.`,
  )
  if (cycle.processor_invoice_id) lines.push(`  Invoice ${cycle.processor_invoice_id} at the processor.`)
  else lines.push(`  No invoice yet${cycle.invoiceProblem ? `: ${cycle.invoiceProblem}` : ''}.`)
  if (cycle.state === 'closed') return [...lines, '  The merchant has not paid it yet.']
  lines.push(`  Paid ${out.shortTime(cycle.charged_at)}, payment ${cycle.processor_payment_reference}.`)
  lines.push(`  That released ${displayMoney(cycle.creatorShare)} to the creator for this cycle.`)
  return [...lines, ...payoutLines(story.payouts, out)]
}

function payoutLines(payouts: SaleExplanation['payouts'], out: Output): string[] {
  const lines = payouts.map((payout, index) => {
    const { id, amount, state, created_at, settled_at, failure_reason, processor_payout_id } = payout
    const end = {
      pending: 'is about to be sent to the processor',
      submitted: 'is with the processor',
      paid: `was paid ${out.shortTime(settled_at)}`,
      failed: `failed ${out.shortTime(settled_at)}: ${failure_reason ?? 'no reason given'}; its amount went back into the balance`,
    }[state]
    const instead = payouts[index - 1]?.state === 'failed' ? ' in place of the failed one' : ''
    const there = processor_payout_id ? ` (${processor_payout_id} at the processor)` : ''
    return `  Payout ${id}${there} of ${displayMoney(amount)}, made ${out.shortTime(created_at)}${instead}, ${end}.`
  })
  const waiting = payouts.every((payout) => payout.state === 'failed')
  return waiting
    ? [...lines, '  It goes out with the next payout run that the creator qualifies for.']
    : lines
}

type Check = SaleExplanation['receipt']['decision']['checks'][number]

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
  product_unknown: 'The shop still knows the product, or an earlier report names it',
  product_not_in_offer: 'A product of the offer was ordered',
  nothing_payable: 'There is something to pay',
}

const VERDICTS = { passed: 'yes', failed: 'NO', not_applicable: 'not asked' } as const

/** The checks that failed with what they saw, and how many passed; with `all`, each. */
function checkLines(
  { checks, rule_version }: SaleExplanation['receipt']['decision'],
  out: Output,
  all: boolean,
): string[] {
  const countOf = (verdict: Check['verdict']) => checks.filter((check) => check.verdict === verdict).length
  const saw = (check: Check) =>
    Object.entries(check.saw)
      .map(([name, value]) => sawText(name, value, out))
      .join(', ')
  if (all) {
    return out.table(checks, [
      { title: 'Code', cell: (check) => check.name },
      { title: 'Holds', cell: (check) => VERDICTS[check.verdict] },
      { title: 'Saw', flexible: 'wrap', least: 24, cell: saw },
      { title: 'Check', flexible: true, cell: (check) => SENTENCES[check.name] },
    ])
  }
  return [
    ...checks
      .filter(({ verdict }) => verdict === 'failed')
      .map((check) => `  ${out.style('red', '✗')} Failed: ${SENTENCES[check.name]} (${saw(check)})`),
    `  ${out.style('green', '✓')} ${counted(countOf('passed'), 'check')} passed by version ${rule_version} of the rule, ${countOf('not_applicable')} not asked; --all shows each and what it saw.`,
  ]
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
