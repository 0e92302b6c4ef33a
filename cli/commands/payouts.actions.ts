import { OPERATOR } from '../../server/flags/audit.service.ts'
import type { PayoutWait } from '../../server/payouts/payout-eligibility.rule.ts'
import { type PayoutRunOutcome, runPayouts } from '../../server/payouts/payout-run.service.ts'
import { wirePayout } from '../../server/payouts/payout-wire.ts'
import {
  getPayout,
  listPayouts,
  type PayoutRow,
  payoutNotFound,
  retryPayout,
} from '../../server/payouts/payouts.service.ts'
import { pageById } from '../../server/platform/api/page.ts'
import type { Config } from '../../server/platform/config.ts'
import { CURRENCY } from '../../shared/money.ts'
import type { PageOptions, ReasonOption } from '../command.ts'
import { confirm, movesMoney, reads } from '../context.ts'
import { nameOf, peopleOf, personOf, userIdOf } from '../lists.ts'
import { callStates, callText, failIfSomeFailed, wireCall } from '../processor-calls.ts'
import { counted, displayMoney, formatMoney, sum } from '../terminal/output.ts'
import { money } from '../terminal/table.ts'

type ListOptions = PageOptions & { state?: PayoutRow['state'] }

export const list = reads(async ({ platform, out }, options: ListOptions) => {
  const creatorId = await userIdOf(platform, options.creator)
  const page = await pageById(options, (request) =>
    listPayouts(platform.database.reader, creatorId, { state: options.state ?? null, ...request }),
  )
  const person = await peopleOf(platform, page.items, (row) => row.creator_id)
  const pending = page.items.filter((row) => row.state === 'pending').map((row) => row.id)
  const calls = await callStates(platform, 'payout', pending)
  const why = ({ id, failure_reason }: PayoutRow) =>
    failure_reason ?? callText(out, calls.get(id), `payouts retry ${id}`)
  out.showPage(page, {
    columns: [
      { title: 'Id', cell: (row) => row.id },
      { title: 'State', cell: (row) => row.state },
      money('Amount', (row) => row.amount),
      { title: 'Creator', flexible: true, cell: (row) => nameOf(person(row.creator_id)) },
      { title: 'Why', flexible: true, cell: why },
      out.moment('Made', (row) => row.created_at),
      out.moment('Settled', (row) => row.settled_at),
    ],
    none: 'No payouts.',
    wire: (row) => ({
      ...wirePayout(row),
      creator: person(row.creator_id),
      call: wireCall(calls.get(row.id)),
    }),
  })
})

export const run = movesMoney(async (context, { dryRun = false }: { dryRun?: boolean }) => {
  const { app, platform, out, config } = context
  const progress = (done: number, all: number) => out.progress(`creator ${done} of ${all}`)
  const preview = await runPayouts(platform, app.processor, { dryRun: true, progress })
  out.endProgress()
  const payable = preview.filter(({ kind }) => kind === 'paid_out')
  if (!dryRun && payable.length > 0) {
    const total = displayMoney(sum(payable.map(({ amount }) => amount)))
    await confirm(context, `Make ${counted(payable.length, 'payout')}, ${total} in all? It cannot be undone.`)
  }
  // Also where nothing is paid: what waits for a person is flagged.
  const outcomes = dryRun ? preview : await runPayouts(platform, app.processor, { actor: OPERATOR, progress })
  const person = await peopleOf(platform, outcomes, (outcome) => outcome.creatorId)
  const items = outcomes.map((outcome) => ({
    creator: person(outcome.creatorId),
    outcome: outcome.kind,
    why: outcome.kind === 'waits' ? outcome.why : null,
    payout_id: outcome.kind === 'paid_out' ? outcome.payoutId : null,
    amount: formatMoney(outcome.amount),
    currency: CURRENCY,
  }))
  const whatHappens = (outcome: PayoutRunOutcome) => {
    if (outcome.kind === 'waits') return waitText(outcome.why, config)
    if (outcome.kind === 'failed') return 'failed'
    return dryRun ? 'would be paid out' : `payout ${outcome.payoutId}`
  }
  const table = out.table(outcomes, [
    { title: 'Creator', flexible: true, cell: (outcome) => nameOf(person(outcome.creatorId)) },
    money('Amount', (outcome) => outcome.amount),
    { title: 'What happens', flexible: 'wrap', cell: whatHappens },
  ])
  out.show({ dry_run: dryRun, items }, () =>
    outcomes.length === 0 ? ['No creator has a released balance.'] : [...table, endLine(outcomes, dryRun)],
  )
  failIfSomeFailed(outcomes)
})

function waitText(why: PayoutWait, { PAYOUT_THRESHOLD }: Config): string {
  return {
    below_threshold: `waits: below the threshold of ${displayMoney(PAYOUT_THRESHOLD)}`,
    suspended: 'waits: the creator is suspended',
    no_destination: 'waits: no payout destination in effect',
    destination_broken:
      'waits for a person: a payout destination of this creator was changed in the database',
    failed_three_times: 'waits for a person: three payouts failed in a row',
    failure_not_confirmed: 'waits for a person: the processor has not agreed that the last payout failed',
    processor_unavailable:
      'waits: the processor cannot be asked about the last payout or its balance; the next run asks again',
    balance_too_low: 'waits: the balance at the processor is too low for all payouts that are due',
  }[why]
}

function endLine(outcomes: readonly PayoutRunOutcome[], dryRun: boolean): string {
  if (dryRun) return 'Nothing was written.'
  const made = outcomes.filter(({ kind }) => kind === 'paid_out').length
  if (made === 0) return 'No payout was made.'
  return `The running service sends ${made === 1 ? 'it' : 'them'} to the processor.`
}

export const retry = movesMoney(async (context, payoutId: string, { reason = null }: ReasonOption) => {
  const { app, platform, out } = context
  const found = await getPayout(platform.database.reader, payoutId)
  if (!found) throw payoutNotFound(payoutId)
  await confirm(context, `Send payout ${payoutId} again, ${displayMoney(found.amount)}?`)
  const request = { payoutId, actor: OPERATOR, reason }
  const retried = await retryPayout(platform, app.processor, request)
  const { row: payout, attemptId, newDestination, adopts } = retried
  const creator = await personOf(platform, payout.creator_id)
  const document = {
    payout_id: payoutId,
    creator,
    amount: formatMoney(payout.amount),
    currency: CURRENCY,
    attempt_id: attemptId,
    new_destination: newDestination,
    payout_at_the_processor: adopts,
  }
  const account = newDestination ? 'another' : 'the same'
  out.show(document, () => [
    adopts === null
      ? `${displayMoney(payout.amount)} for ${nameOf(creator)} is sent again, to ${account} account.`
      : `The processor holds payout ${adopts} already: the running service takes it over.`,
  ])
})
