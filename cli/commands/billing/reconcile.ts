import type { Command } from 'commander'
import type { FoundDifference, ReconcileOutcome } from '../../../server/jobs/reconciliation.ts'
import type { HeldRecord, Processor } from '../../../server/processor/processor.ts'
import { CURRENCY } from '../../../shared/money.ts'
import { exampleText } from '../../command.ts'
import { withApp } from '../../context.ts'
import { Failure } from '../../failures.ts'
import { displayMoney, formatMoney, type Output, wireTime } from '../../terminal/output.ts'

export function addReconcileCommand(group: Command): void {
  group
    .command('reconcile')
    .description(
      "compare invoices and payouts with the processor's records and flag what differs, as the schedule does; moves no money",
    )
    .option(
      '--since <time>',
      'settled ones from then on, RFC 3339 or a date; 40 days back unless given (what is open always counts)',
    )
    .addHelpText('after', exampleText('billing reconcile', 'billing reconcile --since 2026-11-01 --json'))
    .action((options: { since?: string }, command: Command) => reconcile(options.since, command))
}

function reconcile(sinceText: string | undefined, command: Command): Promise<void> {
  return withApp(command, async ({ app, config, out }) => {
    const { readMoment } = await import('../../arguments.ts')
    const jobs = await import('../../../server/jobs/reconciliation.ts')
    const since = sinceText === undefined ? null : await readMoment(sinceText, config.BILLING_TIMEZONE)
    const outcome = await jobs.reconcile(app.platform, app.processor, {
      ...(since === null ? {} : { since }),
      onProgress: (compared) => out.progress(`compared ${compared}`),
    })
    out.endProgress()
    const { flagUndelivered } = await import('../../../server/jobs/undelivered-events.ts')
    const undelivered = await flagUndelivered(app.platform, app.processor)
    const { flagUnknownRecords } = await import('../../../server/jobs/unknown-records.ts')
    const unknown = await flagUnknownRecords(app.platform, app.processor)
    const document = {
      ...documentOf(outcome, since),
      ...(undelivered === null ? {} : { undelivered }),
      ...(unknown === null ? {} : { unknown: unknown.count, unknown_items: unknown.records.map(wireRecord) }),
    }
    out.show(document, () => [
      ...linesOf(outcome, jobs.describeDifferences, out),
      ...unknownLines(unknown?.records ?? [], out),
    ])
    refuseTrouble(outcome, listTroubles(app.processor, undelivered, unknown?.count ?? null))
  })
}

/** What the processor's lists of events and records show; `null`: it does not answer, or has no such list. */
function listTroubles(processor: Processor, undelivered: number | null, unknown: number | null): string[] {
  const events = undelivered === 1 ? '1 event' : `${undelivered} events`
  return [
    ...(undelivered ? [`the processor gave up delivering ${events}`] : []),
    ...(undelivered === null && processor.undelivered ? ['the processor does not list its events'] : []),
    ...(unknown ? [`the processor has ${unknown} that no call of ours made`] : []),
    ...(unknown === null && processor.listRecords ? ['the processor does not list its records'] : []),
  ]
}

/** Exit 1, so that a script hears of it, as "ledger verify" does. */
function refuseTrouble({ differing, unanswered, complete }: ReconcileOutcome, more: string[]): void {
  const [first] = unanswered
  const troubles = [
    ...(differing.length > 0 ? [`${differing.length} differ; see "affiliate flagged list"`] : []),
    ...(first ? [`the processor could not be asked about ${unanswered.length} (${first.detail})`] : []),
    ...(complete ? [] : ['not everything was asked about']),
    ...more,
  ]
  if (troubles.length > 0) throw new Failure(`Not reconciled: ${troubles.join('; ')}.`)
}

function linesOf(
  { compared, differing, unanswered }: ReconcileOutcome,
  describe: typeof import('../../../server/jobs/reconciliation.ts').describeDifferences,
  out: Output,
): string[] {
  const table = out.table(
    [
      { title: 'What' },
      { title: 'Id' },
      { title: 'Amount', right: true },
      { title: 'Here' },
      { title: 'There', flexible: true },
      { title: 'Difference', flexible: true },
      { title: 'Flag' },
    ],
    differing.map(({ ours, items, differences, flag }) => [
      ours.kind,
      ours.id,
      displayMoney(ours.amount),
      ours.standing,
      items.map(({ status, amount }) => `${status} ${displayMoney(amount)}`).join(', ') || 'nothing',
      describe(differences),
      FLAG_WORDS[flag],
    ]),
  )
  return [
    ...(differing.length > 0 ? [...table, ''] : []),
    `${compared} compared, ${differing.length} differ, ${unanswered.length} could not be asked about.`,
  ]
}

/** What the processor has and no call of ours made. */
function unknownLines(records: readonly HeldRecord[], out: Output): string[] {
  if (records.length === 0) return []
  const table = out.table(
    [
      { title: 'At the processor, not ours' },
      { title: 'Status' },
      { title: 'Amount', right: true },
      { title: 'Made' },
      { title: 'Id', flexible: true },
    ],
    records.map(({ type, status, amount, at, id }) => [
      type,
      status,
      amount === null ? 'unreadable' : displayMoney(amount),
      out.shortTime(Date.parse(at)),
      id,
    ]),
  )
  return ['', ...table]
}

function wireRecord({ id, attemptId, type, amount, status, at }: HeldRecord) {
  return { id, request_id: attemptId, type, amount: amount === null ? null : formatMoney(amount), status, at }
}

const FLAG_WORDS: Record<FoundDifference['flag'], string> = {
  raised: 'raised now',
  refreshed: 'open already',
  known: 'resolved by a person before',
}

function documentOf(outcome: ReconcileOutcome, since: number | null) {
  return {
    since: wireTime(since),
    compared: outcome.compared,
    complete: outcome.complete,
    currency: CURRENCY,
    items: outcome.differing.map(({ ours, items, differences, flag }) => ({
      kind: ours.kind,
      id: ours.id,
      standing: ours.standing,
      amount: formatMoney(ours.amount),
      processor_id: ours.processorId,
      differences,
      flag,
      theirs: items.map((item) => ({
        id: item.id,
        amount: formatMoney(item.amount),
        currency: item.currency,
        status: item.status,
      })),
    })),
    unanswered: outcome.unanswered,
  }
}
