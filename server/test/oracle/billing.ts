import { periodAt } from './calendar.ts'
import { type Call, type Cycle, post, type Sale, type State } from './state.ts'

const ONE_RUPEE = 100

export function salesOf(state: State, cycle: Cycle): Sale[] {
  return state.sales.filter((sale) => sale.cycle === cycle)
}

export function totalsOf(state: State, cycle: Cycle): { commission: number; fee: number } {
  const sales = salesOf(state, cycle)
  return {
    commission: sales.reduce((sum, sale) => sum + sale.commission, 0),
    fee: sales.reduce((sum, sale) => sum + sale.fee, 0),
  }
}

/** What each creator earned in a cycle, in the order of their names. */
export function sharesOf(state: State, cycle: Cycle): { creator: string; amount: number }[] {
  const shares = new Map<string, number>()
  for (const sale of salesOf(state, cycle)) {
    const creator = sale.link?.creator ?? ''
    shares.set(creator, (shares.get(creator) ?? 0) + sale.commission)
  }
  return [...shares].sort(([a], [b]) => (a < b ? -1 : 1)).map(([creator, amount]) => ({ creator, amount }))
}

export function cyclesOf(state: State, merchant: string): Cycle[] {
  return state.cycles.filter((cycle) => cycle.merchant === merchant)
}

/** The open cycle that an acceptance at `now` belongs to; whatever is over by then is closed first. */
export function cycleFor(state: State, merchant: string, now: number): Cycle {
  const open = openCycle(state, merchant)
  if (open && open.end <= now) finish(state, open, now, now)
  return openCycle(state, merchant) ?? startCycle(state, merchant, now)
}

export function openCycle(state: State, merchant: string): Cycle | null {
  return cyclesOf(state, merchant).find((cycle) => cycle.state === 'open') ?? null
}

/** Begins where the former one ended, and ends at the first boundary after both that and the acceptance. */
function startCycle(state: State, merchant: string, now: number): Cycle {
  const former = cyclesOf(state, merchant).at(-1) ?? null
  const period = periodAt(Math.max(now, former?.end ?? now), state.settings.period)
  const cycle: Cycle = {
    name: `${merchant} #${cyclesOf(state, merchant).length + 1}`,
    merchant,
    start: former?.end ?? period.start,
    end: period.end,
    state: 'open',
    creditUsed: 0,
    due: 0,
    closedAt: null,
    chargedAt: null,
    paymentReference: null,
  }
  state.cycles.push(cycle)
  return cycle
}

/** The scheduled close; `asOf` is later than `now` when an operator closes ahead of time. */
export function closeCycles(state: State, asOf: number, now: number): void {
  for (const cycle of state.cycles)
    if (cycle.state === 'open' && cycle.end <= asOf) finish(state, cycle, asOf, now)
}

/** Closes a cycle whose period is over, or carries it on to the next boundary when it holds less than a rupee. */
function finish(state: State, cycle: Cycle, asOf: number, now: number): void {
  const { commission, fee } = totalsOf(state, cycle)
  const total = commission + fee
  if (total < ONE_RUPEE) {
    cycle.end = periodAt(asOf, state.settings.period).end
    return
  }
  cycle.state = 'closed'
  cycle.closedAt = now
  cycle.due = Math.max(ONE_RUPEE, total - unusedCredit(state, cycle.merchant))
  cycle.creditUsed = total - cycle.due
  post(state, [
    ['merchant_receivable', cycle.merchant, cycle.due],
    ['merchant_unbilled', cycle.merchant, -cycle.due],
  ])
  state.calls.push(newCall('invoice', cycle.name, cycle.due, now))
}

export function newCall(kind: Call['kind'], subject: string, amount: number, queuedAt: number): Call {
  return { kind, subject, amount, state: 'waiting', tries: 0, made: 0, queuedAt, unheardAt: null, held: null }
}

function grantedTo(state: State, merchant: string): number {
  return state.credits
    .filter((credit) => credit.merchant === merchant)
    .reduce((sum, credit) => sum + credit.amount, 0)
}

function unusedCredit(state: State, merchant: string): number {
  const used = cyclesOf(state, merchant).reduce((sum, cycle) => sum + cycle.creditUsed, 0)
  return grantedTo(state, merchant) - used
}

/** At most what was ever accepted, less what was granted before. */
export function creditable(state: State, merchant: string): number {
  const accepted = cyclesOf(state, merchant).reduce((sum, cycle) => {
    const { commission, fee } = totalsOf(state, cycle)
    return sum + commission + fee
  }, 0)
  return Math.max(0, accepted - grantedTo(state, merchant))
}

export type Grant = { merchant: string; amount: number; reference: string }

export function grantCredit(state: State, grant: Grant): 'granted' | 'known' | 'refused' {
  const earlier = state.credits.find((credit) => credit.reference === grant.reference)
  if (earlier)
    return earlier.merchant === grant.merchant && earlier.amount === grant.amount ? 'known' : 'refused'
  if (grant.amount <= 0 || grant.amount > creditable(state, grant.merchant)) return 'refused'
  state.credits.push(grant)
  post(state, [
    ['platform_credits', 'the platform', grant.amount],
    ['merchant_unbilled', grant.merchant, -grant.amount],
  ])
  return 'granted'
}

/** The processor has confirmed the payment: what its creators earned is theirs to be paid. */
export function charge(state: State, cycle: Cycle, paymentReference: string, now: number): void {
  cycle.state = 'charged'
  cycle.chargedAt = now
  cycle.paymentReference = paymentReference
  post(state, [
    ['processor_clearing', 'the platform', cycle.due],
    ['merchant_receivable', cycle.merchant, -cycle.due],
  ])
  for (const { creator, amount } of sharesOf(state, cycle)) {
    post(state, [
      ['creator_pending', creator, amount],
      ['creator_released', creator, -amount],
    ])
  }
}
