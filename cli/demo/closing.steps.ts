import { z } from 'zod'
import { formatMoney, type Paisa } from '../../shared/money.ts'
import { type ClosingFigures, type Expected, expectedFigures, statementRows } from './closing-statement.ts'
import { CommandFailed } from './command-line.ts'
import type { Demo } from './demo.ts'
import { cyclesOf, payoutsOf } from './money.steps.ts'
import { salesOf } from './orders.steps.ts'
import { type People, profile } from './people.steps.ts'
import { sum } from './rupees.ts'
import { paisa, type StoryOrder, type StoryOrders } from './scenario.ts'
import type { StepReport } from './step-report.ts'

/** What `ledger balances --json` says of each account. */
const balances = z.object({
  items: z.array(z.object({ account: z.string(), balance: z.string() })),
})
const verification = z.object({
  ok: z.boolean(),
  items: z.array(
    z.object({ name: z.string(), statement: z.string(), rows: z.number(), breaches: z.array(z.unknown()) }),
  ),
})
const events = z.object({ items: z.array(z.object({ source: z.string(), state: z.string() })) })
type InboxEvent = z.output<typeof events>['items'][number]

/** The closing figures on the wire: counts as numbers, amounts as decimal strings. */
export interface WireFigures {
  merchant: { accepted: number; rejected: number; unbilled: string; billed: string; paid: string }
  creator: { pending: string; released: string; in_transit: string; paid: string }
  platform: { fees: string; credits: string; clearing: string }
}

export interface Closing {
  figures: WireFigures
  invariants: z.output<typeof verification>['items']
  holds: boolean
  events: InboxEvent[]
  payouts: number
}

/** Gathers what service and journal say at the end, and compares it with what the manifest adds up to. */
export async function closeBooks(
  demo: Demo,
  report: StepReport,
  people: People,
  orders: StoryOrders,
): Promise<Closing> {
  const [books, verified, inbox, found] = await Promise.all([
    demo.command('ledger', 'balances').then((document) => balances.parse(document)),
    verify(demo),
    settledEvents(demo),
    figuresOfService(demo, people),
  ])
  const inJournal = (account: string) =>
    sum(books.items.filter((item) => item.account === account).map((item) => paisa(item.balance)))
  const figures: ClosingFigures = {
    ...found,
    merchant: { ...found.merchant, unbilled: inJournal('merchant_unbilled') },
    platform: {
      fees: 0 - inJournal('platform_fees'),
      credits: inJournal('platform_credits'),
      clearing: inJournal('processor_clearing'),
    },
  }
  const expected = expectedOf(orders, demo.processor.payoutUnit)
  const names = { merchant: people.merchant.name, creator: people.creator.name }
  for (const row of statementRows(expected, figures, names)) report.row(...row)
  checkFigures(report, expectedFigures(expected), figures)
  report.check('pending in the journal', 0 - inJournal('creator_pending'), figures.creator.pending)
  report.check('released in the journal', 0 - inJournal('creator_released'), figures.creator.released)
  report.check('in transit in the journal', 0 - inJournal('payouts_in_transit'), figures.creator.inTransit)
  report.check('unpaid invoices', inJournal('merchant_receivable'), 0)
  return {
    figures: wireFigures(figures),
    invariants: verified.items,
    holds: verified.ok,
    events: inbox,
    payouts: found.payouts,
  }
}

/** Books that do not hold are no failure to run the command: it says which, beside its exit code 1. */
async function verify(demo: Demo): Promise<z.output<typeof verification>> {
  const document = await demo.command('ledger', 'verify').catch((error: unknown) => {
    if (error instanceof CommandFailed && error.stdout !== '') return JSON.parse(error.stdout)
    throw error
  })
  return verification.parse(document)
}

/** The events of the inbox, once none waits: the processor can send several about one thing. */
function settledEvents(demo: Demo): Promise<InboxEvent[]> {
  return demo.until('all events to be applied', async () => {
    const { items } = events.parse(await demo.command('webhooks', 'events'))
    return items.some(({ state }) => state === 'pending') ? null : items
  })
}

type ServiceFigures = Pick<ClosingFigures, 'creator'> & {
  payouts: number
  merchant: Omit<ClosingFigures['merchant'], 'unbilled'>
}

/** What merchant and creator read over HTTP. */
async function figuresOfService(demo: Demo, { merchant, creator }: People): Promise<ServiceFigures> {
  const [{ items: sales }, cycles, { balance }, payouts] = await Promise.all([
    salesOf(demo, merchant),
    cyclesOf(demo, merchant),
    profile(demo, creator),
    payoutsOf(demo, creator),
  ])
  const due = (states: string[]) =>
    sum(cycles.filter((cycle) => states.includes(cycle.state)).map((cycle) => paisa(cycle.amount_due)))
  const paidOut = sum(payouts.filter(({ state }) => state === 'paid').map((payout) => paisa(payout.amount)))
  if (!balance) throw new Error('the service tells the creator no balance')
  if (paisa(balance.paid) !== paidOut) throw new Error('the paid balance is not the sum of the paid payouts')
  return {
    payouts: payouts.length,
    merchant: {
      accepted: sales.filter((sale) => sale.acceptance_status === 'accepted').length,
      rejected: sales.filter((sale) => sale.acceptance_status === 'rejected').length,
      billed: due(['closed', 'charged']),
      paid: due(['charged']),
    },
    creator: {
      pending: paisa(balance.pending),
      released: paisa(balance.released),
      inTransit: paisa(balance.in_transit),
      paid: paisa(balance.paid),
    },
  }
}

function expectedOf({ first, later }: StoryOrders, payoutUnit: Paisa): Expected {
  const accepted = (orders: StoryOrder[]) => orders.filter((order) => order.accepted)
  const all = [...first, later]
  return {
    charged: accepted(first),
    open: accepted([later]),
    rejected: all.length - accepted(all).length,
    payoutUnit,
  }
}

function checkFigures(report: StepReport, expected: ClosingFigures, found: ClosingFigures): void {
  for (const party of ['merchant', 'creator', 'platform'] as const) {
    const [must, is] = [Object.entries(expected[party]), new Map(Object.entries(found[party]))]
    for (const [name, amount] of must)
      report.check(`closing ${party} ${name}`, is.get(name) ?? 'none', amount)
  }
}

function wireFigures({ merchant, creator, platform }: ClosingFigures): WireFigures {
  return {
    merchant: {
      accepted: merchant.accepted,
      rejected: merchant.rejected,
      unbilled: formatMoney(merchant.unbilled),
      billed: formatMoney(merchant.billed),
      paid: formatMoney(merchant.paid),
    },
    creator: {
      pending: formatMoney(creator.pending),
      released: formatMoney(creator.released),
      in_transit: formatMoney(creator.inTransit),
      paid: formatMoney(creator.paid),
    },
    platform: {
      fees: formatMoney(platform.fees),
      credits: formatMoney(platform.credits),
      clearing: formatMoney(platform.clearing),
    },
  }
}

/** Ten orders, one replay of another id and the later order. */
const STORE_EVENTS = 12

export function showVerification(
  { processor }: Demo,
  report: StepReport,
  { invariants, holds, events: inbox, payouts }: Closing,
): void {
  report.row('$', 'affiliate ledger verify')
  const rows = sum(invariants.map((invariant) => invariant.rows))
  const broken = invariants.filter((invariant) => invariant.breaches.length > 0)
  report.row(
    'invariants',
    `${invariants.length - broken.length} of ${invariants.length} hold, over ${rows} rows`,
  )
  for (const invariant of broken) report.row('broken', invariant.statement)
  report.check('ledger verify holds', String(holds && broken.length === 0), 'true')
  const settled = inbox.filter((event) => event.state === 'done' || event.state === 'ignored')
  report.row('inbox', `${settled.length} of ${inbox.length} signed events applied or found to change nothing`)
  const of = (source: string) => settled.filter((event) => event.source === source).length
  report.check('store events settled', of('store'), STORE_EVENTS)
  processor.checkEvents(report, of('processor'), payouts)
  report.check('events waiting or set aside', inbox.length - settled.length, 0)
}
