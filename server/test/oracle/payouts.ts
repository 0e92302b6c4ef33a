import { newCall, sharesOf } from './billing.ts'
import { destinationSince } from './marketplace.ts'
import { known, type Payout, post, raiseFlag, type State } from './state.ts'

const FAILURES_IN_A_ROW = 3
const FAILURE_FLAG = 'payout_failed_repeatedly'

export function payoutsOf(state: State, creator: string): Payout[] {
  return state.payouts.filter((payout) => payout.creator === creator)
}

/** What is left of the shares of charged cycles after the payouts that have not failed. */
function freeShares(state: State, creator: string): Payout['lines'] {
  const carried = payoutsOf(state, creator)
    .filter((payout) => payout.state !== 'failed')
    .flatMap((payout) => payout.lines)
  const left = ({ cycle, amount }: Payout['lines'][number]) =>
    carried.reduce((rest, line) => (line.cycle === cycle ? rest - line.amount : rest), amount)
  return state.cycles
    .filter((cycle) => cycle.state === 'charged')
    .flatMap((cycle) =>
      sharesOf(state, cycle)
        .filter((share) => share.creator === creator)
        .map(({ amount }) => ({ cycle, amount: left({ cycle, amount }) })),
    )
    .filter((share) => share.amount > 0)
}

/** The shares in order until the amount is reached. */
function cut(shares: Payout['lines'], amount: number): Payout['lines'] {
  const lines: Payout['lines'] = []
  let rest = amount
  for (const share of shares) {
    const line = { ...share, amount: share.amount < rest ? share.amount : rest }
    if (line.amount > 0) lines.push(line)
    rest -= line.amount
  }
  return lines
}

/** One payout of each creator's whole released balance, where nothing stands against it. */
export function runPayouts(state: State, now: number): void {
  for (const { name, role } of state.people.values()) if (role === 'creator') payCreator(state, name, now)
}

function payCreator(state: State, creator: string, now: number): void {
  const lines = freeShares(state, creator)
  const balance = lines.reduce((sum, line) => sum + line.amount, 0)
  const amount = Math.floor(balance / state.settings.payoutUnit) * state.settings.payoutUnit
  if (amount === 0 || amount < state.settings.payoutThreshold) return
  const since = destinationSince(state, creator, now)
  if (known(state.people, creator).suspended || since === null) return
  const tooOften = failedInRow(state, creator, since) >= FAILURES_IN_A_ROW
  const word = tooOften ? 'denies' : processorOnFailed(state, creator, lines)
  if (word === 'denies') raiseFlag(state, FAILURE_FLAG, creator)
  if (word === 'agrees') makePayout(state, creator, cut(lines, amount), amount, now)
}

/** Since the last paid one, the account in force, and the last time that a person has looked. */
function failedInRow(state: State, creator: string, destinationSinceAt: number): number {
  const payouts = payoutsOf(state, creator)
  const lastPaid = Math.max(0, ...payouts.filter(isPaid).map((payout) => payout.settledAt ?? 0))
  const looked = Math.max(
    0,
    ...state.flags
      .filter((flag) => flag.kind === FAILURE_FLAG && flag.about === creator)
      .map((flag) => flag.resolvedAt ?? 0),
  )
  return payouts.filter(
    (payout) =>
      payout.state === 'failed' &&
      (payout.settledAt ?? 0) > lastPaid &&
      payout.createdAt >= Math.max(looked, destinationSinceAt),
  ).length
}

function isPaid(payout: Payout): boolean {
  return payout.state === 'paid'
}

/** Asked about the failed payouts that carried these shares last: it must agree that each has failed. */
function processorOnFailed(
  state: State,
  creator: string,
  lines: Payout['lines'],
): 'agrees' | 'denies' | 'no answer' {
  const replaced = new Set(
    lines.flatMap(({ cycle }) =>
      payoutsOf(state, creator)
        .filter((payout) => payout.lines.some((line) => line.cycle === cycle))
        .filter(
          (payout, at, all) =>
            payout.state === 'failed' &&
            !all.slice(at + 1).some((later) => later.createdAt > (payout.settledAt ?? 0)),
        ),
    ),
  )
  if (replaced.size > 0 && state.lookupsDown) return 'no answer'
  const held = [...replaced].map((payout) => state.calls.find((call) => call.subject === payout.name)?.held)
  return held.every((status) => status === 'failed' || status === null) ? 'agrees' : 'denies'
}

function makePayout(
  state: State,
  creator: string,
  lines: Payout['lines'],
  amount: number,
  now: number,
): void {
  const name = `${creator} payout ${payoutsOf(state, creator).length + 1}`
  state.payouts.push({
    name,
    creator,
    amount,
    lines,
    state: 'pending',
    createdAt: now,
    submittedAt: null,
    settledAt: null,
    failureReason: null,
  })
  post(state, [
    ['creator_released', creator, amount],
    ['payouts_in_transit', creator, -amount],
  ])
  state.calls.push(newCall('payout', name, amount, now))
}

/** The processor's last word on a payout. */
export function settlePayout(state: State, payout: Payout, failureReason: string | null, now: number): void {
  payout.state = failureReason === null ? 'paid' : 'failed'
  payout.settledAt = now
  payout.failureReason = failureReason
  const back = failureReason === null ? 'processor_clearing' : 'creator_released'
  post(state, [
    ['payouts_in_transit', payout.creator, payout.amount],
    [back, failureReason === null ? 'the platform' : payout.creator, -payout.amount],
  ])
}

/** A person has looked at a creator's failed payouts. */
export function resolveFailures(state: State, creator: string, now: number): boolean {
  const flag = state.flags.find((one) => one.open && one.kind === FAILURE_FLAG && one.about === creator)
  if (!flag) return false
  flag.open = false
  flag.resolvedAt = now
  return true
}
