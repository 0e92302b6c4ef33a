import { type BillingCycleWire, cyclePage } from '../../shared/schemas/billing.ts'
import { type PayoutWire, payoutPage } from '../../shared/schemas/payouts.ts'
import type { Demo } from './demo.ts'
import { type People, type Person, profile } from './people.steps.ts'
import { addition, rupees, sum } from './rupees.ts'
import { paisa, type StoryOrder } from './scenario.ts'
import type { StepReport } from './step-report.ts'

/** Closes the billing cycle as of the end of its period: the operator's command, with the server running. */
export async function closeCycle(
  demo: Demo,
  report: StepReport,
  merchant: Person,
  orders: readonly StoryOrder[],
): Promise<void> {
  await demo.processor.prepare(demo)
  const open = (await cyclesOf(demo, merchant)).at(-1)
  if (!open) throw new Error('the accepted sales opened no billing cycle')
  // A tried close that was not answered may have taken effect.
  if (open.state === 'open') await demo.command('billing', 'close', '--as-of', open.period_end)
  report.row('$', `affiliate billing close --as-of ${open.period_end}`)
  const cycle = await firstCycle(demo, merchant)
  const accepted = orders.filter((order) => order.accepted)
  const commissions = accepted.map((order) => order.commission)
  const fees = accepted.map((order) => order.fee)
  report.row('commission', rupees(paisa(cycle.commission_total)), addition(commissions))
  report.row('platform fee', rupees(paisa(cycle.fee_total)), addition(fees))
  const due = [paisa(cycle.commission_total), paisa(cycle.fee_total)]
  report.row('amount due', rupees(paisa(cycle.amount_due)), addition(due))
  report.check('cycle is closed', String(cycle.state !== 'open'), 'true')
  report.check('commission of the cycle', rupees(paisa(cycle.commission_total)), rupees(sum(commissions)))
  report.check('fee of the cycle', rupees(paisa(cycle.fee_total)), rupees(sum(fees)))
  report.check('amount due', rupees(paisa(cycle.amount_due)), rupees(sum([...commissions, ...fees])))
}

/** Waits for the invoice and for the processor's signed event that it is paid, which charges the cycle. */
export async function payInvoice(demo: Demo, report: StepReport, people: People): Promise<void> {
  const charged = await demo.until('the cycle to be charged', async () => {
    const cycle = await firstCycle(demo, people.merchant)
    return cycle.state === 'charged' ? cycle : null
  })
  report.row('invoice', charged.processor_invoice_id ?? 'none')
  report.row('payment', charged.processor_payment_reference ?? 'none', demo.processor.confirmation)
  const { balance } = await profile(demo, people.creator)
  const released = paisa(balance?.released ?? '0.00')
  report.row('cycle', charged.state)
  report.row('released', `${rupees(released)} to ${people.creator.name}`)
  report.check('released balance', rupees(released), rupees(paisa(charged.commission_total)))
  report.check('pending balance', balance?.pending ?? 'none', '0.00')
}

/** The first payout, which the processor is made to fail: its amount goes back into the balance. */
export async function failPayout(demo: Demo, report: StepReport, people: People): Promise<void> {
  const { creator, merchant } = people
  const { failure } = demo.processor
  if ('impossible' in failure) {
    report.row('skipped', failure.impossible)
    return
  }
  if ((await payoutsOf(demo, creator)).length === 0) {
    // Only before there is a payout: set once more later, it would fail the next one too.
    await failure.plan(demo)
    await demo.command('payouts', 'run')
  }
  report.row('$', 'affiliate payouts run')
  const failed = await demo.until('the first payout to fail', async () => {
    const first = (await payoutsOf(demo, creator)).at(-1)
    return first && isSettled(first) ? first : null
  })
  const { balance } = await profile(demo, creator)
  report.row('payout', rupees(paisa(failed.amount)), failed.state, failed.failure_reason ?? '')
  report.row('released', rupees(paisa(balance?.released ?? '0.00')), 'back in the balance')
  report.check('state of the first payout', failed.state, 'failed')
  report.check('reason of the failure', failed.failure_reason ?? 'none', failure.reason)
  const { commission_total } = await firstCycle(demo, merchant)
  report.check('balance after the failure', balance?.released ?? 'none', commission_total)
  report.check('in transit after the failure', balance?.in_transit ?? 'none', '0.00')
}

/** The next run makes a payout of the balance, and this one arrives. What is less than the processor's unit stays. */
export async function payOut(demo: Demo, report: StepReport, { creator, merchant }: People): Promise<void> {
  const paid = await demo.until('the payout to be paid', async () => {
    const made = (await payoutsOf(demo, creator)).find((payout) => payout.state !== 'failed')
    if (!made) {
      // The run asks the processor about the failed payout first; without an answer it leaves it for the next run.
      await demo.command('payouts', 'run')
      return null
    }
    return isSettled(made) ? made : null
  })
  const { balance } = await profile(demo, creator)
  report.row('$', 'affiliate payouts run')
  report.row('payout', rupees(paisa(paid.amount)), paid.state, demo.processor.confirmation)
  report.row('released', rupees(paisa(balance?.released ?? '0.00')))
  const released = paisa((await firstCycle(demo, merchant)).commission_total)
  const rest = released % demo.processor.payoutUnit
  report.check('state of the payout', paid.state, 'paid')
  report.check('amount of the payout', rupees(paisa(paid.amount)), rupees(released - rest))
  report.check('paid balance', balance?.paid ?? 'none', paid.amount)
  report.check('released balance', rupees(paisa(balance?.released ?? '0.00')), rupees(rest))
  const expected = 'impossible' in demo.processor.failure ? 1 : 2
  report.check('payouts made', (await payoutsOf(demo, creator)).length, expected)
}

/** Newest first. */
export async function cyclesOf(demo: Demo, merchant: Person): Promise<BillingCycleWire[]> {
  return (await demo.client.call('GET', '/billing-cycles', cyclePage, { token: merchant.token })).items
}

async function firstCycle(demo: Demo, merchant: Person): Promise<BillingCycleWire> {
  const first = (await cyclesOf(demo, merchant)).at(-1)
  if (!first) throw new Error('the merchant has no billing cycle')
  return first
}

/** Newest first. */
export async function payoutsOf(demo: Demo, person: Person): Promise<PayoutWire[]> {
  return (await demo.client.call('GET', '/payouts', payoutPage, { token: person.token })).items
}

function isSettled(payout: PayoutWire): boolean {
  return payout.state === 'paid' || payout.state === 'failed'
}
