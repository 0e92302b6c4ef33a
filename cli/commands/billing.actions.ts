import { type CycleRow, getCycle, listCycles } from '../../server/billing/billing.service.ts'
import { nextCyclePeriod } from '../../server/billing/billing-period.rule.ts'
import { wireCycle } from '../../server/billing/billing-wire.ts'
import { type CloseOutcome, closeDueCycles } from '../../server/billing/close-cycle.service.ts'
import { grantCredit } from '../../server/billing/credits.service.ts'
import { retryInvoice } from '../../server/billing/invoices.service.ts'
import { OPERATOR } from '../../server/flags/audit.service.ts'
import { flagUndelivered, flagUnknownRecords } from '../../server/jobs/processor-lists.ts'
import {
  describeDifferences,
  type FoundDifference,
  type ReconcileOutcome,
  reconcile,
} from '../../server/jobs/reconciliation.ts'
import { pageById } from '../../server/platform/api/page.ts'
import type { HeldRecord } from '../../server/processor/processor.ts'
import { findUser } from '../../server/users/users.service.ts'
import { CURRENCY, type Paisa } from '../../shared/money.ts'
import { readMoment } from '../arguments.ts'
import type { PageOptions, ReasonOption } from '../command.ts'
import { type AppContext, confirm, isAsked, movesMoney, reads, writes } from '../context.ts'
import { Failure } from '../failures.ts'
import { nameOf, peopleOf, personOf, userIdOf } from '../lists.ts'
import { callStates, callText, failIfSomeFailed, wireCall } from '../processor-calls.ts'
import { counted, displayMoney, formatMoney, type Output, sum, wireTime } from '../terminal/output.ts'
import { money } from '../terminal/table.ts'

type CyclesOptions = PageOptions & { state?: CycleRow['state'] }

export const cycles = reads(async ({ platform, out }, options: CyclesOptions) => {
  const merchantId = await userIdOf(platform, options.merchant)
  const page = await pageById(options, (request) =>
    listCycles(platform, { merchantId, state: options.state ?? null, ...request }),
  )
  const person = await peopleOf(platform, page.items, (row) => row.merchant_id)
  const closed = page.items.filter((row) => row.state === 'closed').map((row) => row.id)
  const calls = await callStates(platform, 'invoice', closed)
  const invoice = ({ id, processor_invoice_id }: CycleRow) =>
    (calls.has(id) ? null : processor_invoice_id) ?? callText(out, calls.get(id), `billing reissue ${id}`)
  out.showPage(page, {
    columns: [
      { title: 'Id', cell: (row) => row.id },
      { title: 'State', cell: (row) => row.state },
      { title: 'Merchant', flexible: true, cell: (row) => nameOf(person(row.merchant_id)) },
      money('Due', (row) => row.amount_due),
      out.moment('Ends', (row) => row.period_end),
      { title: 'Invoice', flexible: true, cell: invoice },
      { title: 'Sales', right: true, cell: (row) => row.sales_count },
      money('Commission', (row) => row.commission_total),
      money('Fee', (row) => row.fee_total),
      money('Credit', (row) => row.credit_total),
      out.moment('Begins', (row) => row.period_start),
    ],
    none: 'No billing cycles.',
    wire: (row) => ({
      ...wireCycle(platform, row),
      merchant: person(row.merchant_id),
      sales_count: row.sales_count,
      call: wireCall(calls.get(row.id)),
    }),
  })
})

type CloseOptions = { asOf?: string; merchant?: string; dryRun?: boolean }

export const close = movesMoney(async (context, { dryRun = false, ...options }: CloseOptions) => {
  const { platform, out, config } = context
  const now = platform.clock.now()
  const asOf = readMoment(options.asOf, config) ?? now
  const merchantId = await userIdOf(platform, options.merchant)
  const scope = { asOf, ...(merchantId !== null && { merchantId }) }
  const preview = await closeDueCycles(platform, { ...scope, dryRun: true })
  const early = await earlyLines(context, preview, now)
  const isWritten = !dryRun && preview.length > 0
  if (isWritten) {
    if (isAsked(context)) out.print(early, process.stderr)
    await confirm(context, closeQuestion(preview))
  }
  const progress = (done: number, all: number) => out.progress(`cycle ${done} of ${all}`)
  const outcomes = isWritten
    ? await closeDueCycles(platform, { ...scope, actor: OPERATOR, progress })
    : preview
  const person = await peopleOf(platform, outcomes, (outcome) => outcome.merchantId)
  const items = outcomes.map((outcome) => ({
    billing_cycle_id: outcome.cycleId,
    merchant: person(outcome.merchantId),
    outcome: outcome.kind,
    period_start: wireTime(outcome.periodStart),
    period_end: wireTime(outcome.periodEnd),
    sales_count: outcome.salesCount,
    commission_total: formatMoney(outcome.commissionTotal),
    fee_total: formatMoney(outcome.feeTotal),
    credit_total: formatMoney(outcome.creditTotal),
    amount_due: formatMoney(outcome.amountDue),
    currency: CURRENCY,
  }))
  const table = out.table(outcomes, [
    { title: 'Cycle', cell: (outcome) => outcome.cycleId },
    { title: 'Becomes', cell: (outcome) => outcome.kind },
    { title: 'Merchant', flexible: true, cell: (outcome) => nameOf(person(outcome.merchantId)) },
    money('Due', (outcome) => outcome.amountDue),
    out.moment('Period ends', (outcome) => outcome.periodEnd),
    { title: 'Sales', right: true, cell: (outcome) => outcome.salesCount },
    money('Commission', (outcome) => outcome.commissionTotal),
    money('Fee', (outcome) => outcome.feeTotal),
    money('Credit', (outcome) => outcome.creditTotal),
  ])
  out.show({ as_of: wireTime(asOf), dry_run: dryRun, items }, () => [
    ...(outcomes.length > 0 ? table : []),
    ...(isWritten && isAsked(context) ? [] : early),
    closeSummary(outcomes, dryRun, out.time(asOf)),
  ])
  failIfSomeFailed(outcomes)
})

function countOf(outcomes: readonly CloseOutcome[], kind: CloseOutcome['kind']): number {
  return outcomes.filter((outcome) => outcome.kind === kind).length
}

function closeQuestion(preview: readonly CloseOutcome[]): string {
  const due = sum(preview.map(({ kind, amountDue }) => (kind === 'closed' ? amountDue : 0)))
  const extended = countOf(preview, 'extended')
  const rest = extended === 0 ? '' : `, and extend ${extended} of less than one rupee`
  const cycles = counted(countOf(preview, 'closed'), 'billing cycle')
  return `Close ${cycles}, ${displayMoney(due)} due in all${rest}? It cannot be undone.`
}

const MOST_NAMED = 10

/** What a close before the end of a period does to the merchant's next cycle. */
async function earlyLines(
  { platform, out, config: { BILLING_PERIOD: length, BILLING_TIMEZONE: zone } }: AppContext,
  preview: readonly CloseOutcome[],
  now: number,
): Promise<string[]> {
  const early = preview.filter(({ kind, periodEnd }) => kind === 'closed' && periodEnd > now)
  if (early.length === 0) return []
  const named = early.slice(0, MOST_NAMED)
  const person = await peopleOf(platform, named, ({ merchantId }) => merchantId)
  const more = early.length - named.length
  return [
    'These cycles close before their period is over.',
    'Sales accepted from now on are billed in the next cycle:',
    ...named.flatMap(({ merchantId, periodEnd }) => {
      const next = nextCyclePeriod({ formerPeriodEnd: periodEnd, acceptedAt: now, length, zone })
      return [
        `  ${nameOf(person(merchantId))}: this cycle ends ${out.time(periodEnd)}.`,
        `    Next cycle: ${out.time(next.start)} to ${out.time(next.end)}.`,
      ]
    }),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ]
}

function closeSummary(outcomes: readonly CloseOutcome[], dryRun: boolean, asOf: string): string {
  if (outcomes.length === 0) return `No open cycle ends by ${asOf}.`
  const failed = countOf(outcomes, 'failed')
  const counts = `${countOf(outcomes, 'closed')} closed, ${countOf(outcomes, 'extended')} extended (less than one rupee)${failed === 0 ? '' : `, ${failed} failed`}`
  return dryRun
    ? `Would be ${counts}. Nothing was written.`
    : `${counts}. The running service sends the invoices.`
}

type CreditOptions = { reference: string; reason: string; request?: string }

export const credit = movesMoney(
  async (context, merchant: string, amount: Paisa, { reference, reason, request }: CreditOptions) => {
    const { platform, out } = context
    const { id: merchantId, role, email, display_name } = await findUser(platform, merchant)
    if (role !== 'merchant') throw new Failure(`${email} is not a merchant.`)
    await confirm(context, `Credit ${displayMoney(amount)} to ${email}? It cannot be taken back.`)
    const grant = { merchantId, amount, reference, reason, actor: OPERATOR, requestId: request ?? null }
    const { id, created, requestId } = await grantCredit(platform, grant)
    const owner = { id: merchantId, email, display_name }
    const granted = { amount: formatMoney(amount), currency: CURRENCY, reference }
    out.show({ id, created, merchant: owner, ...granted, request_id: requestId }, () => [
      created
        ? `${displayMoney(amount)} credited to ${email} under ${reference}.`
        : `${reference} had been credited before; nothing changed.`,
      ...(created && requestId !== null ? [`Credit request ${requestId} is granted.`] : []),
    ])
  },
)

export const reissue = movesMoney(async (context, cycleId: string, { reason = null }: ReasonOption) => {
  const { app, platform, out } = context
  const found = await getCycle(platform.database.reader, cycleId)
  if (!found) throw new Failure(`Billing cycle ${cycleId} not found.`, { code: 'not_found' })
  const due = displayMoney(found.amount_due)
  await confirm(context, `Ask the processor for another invoice of cycle ${cycleId}, ${due}?`)
  const request = { cycleId, actor: OPERATOR, reason }
  const { row: cycle, attemptId, adopts } = await retryInvoice(platform, app.processor, request)
  const merchant = await personOf(platform, cycle.merchant_id)
  const document = {
    billing_cycle_id: cycleId,
    merchant,
    amount_due: formatMoney(cycle.amount_due),
    currency: CURRENCY,
    attempt_id: attemptId,
    invoice_at_the_processor: adopts,
  }
  out.show(document, () => [
    adopts === null
      ? `The invoice of ${displayMoney(cycle.amount_due)} for ${nameOf(merchant)} is requested again.`
      : `The processor holds invoice ${adopts} already: the running service takes it over.`,
  ])
})

export const reconcileBooks = writes(async ({ app, platform, config, out }, options: { since?: string }) => {
  const { processor } = app
  const since = readMoment(options.since, config)
  const outcome = await reconcile(platform, processor, {
    ...(since !== null && { since }),
    onProgress: (compared) => out.progress(`compared ${compared}`),
  })
  const undelivered = await flagUndelivered(platform, processor)
  const unknown = await flagUnknownRecords(platform, processor)
  const document = {
    ...reconciliationDocument(outcome, since),
    ...(undelivered !== null && { undelivered }),
    ...(unknown !== null && { unknown: unknown.count, unknown_items: unknown.records.map(wireRecord) }),
  }
  out.show(document, () => [
    ...reconciliationLines(outcome, out),
    ...unknownLines(unknown?.records ?? [], out),
  ])
  const { differing, unanswered, complete } = outcome
  const [first] = unanswered
  // `null`: the processor does not answer, or has no such list.
  const troubles = [
    differing.length > 0 && `${differing.length} differ; see "affiliate flagged list"`,
    first && `the processor could not be asked about ${unanswered.length} (${first.detail})`,
    !complete && 'not everything was asked about',
    undelivered && `the processor gave up delivering ${counted(undelivered, 'event')}`,
    undelivered === null && processor.undelivered && 'the processor does not list its events',
    unknown?.count && `the processor has ${unknown.count} that no call of ours made`,
    unknown === null && processor.listRecords && 'the processor does not list its records',
  ].filter(Boolean)
  // Exit 1, so that a script hears of it, as "ledger verify" does.
  if (troubles.length > 0) throw new Failure(`Not reconciled: ${troubles.join('; ')}.`)
})

function reconciliationLines({ compared, differing, unanswered }: ReconcileOutcome, out: Output): string[] {
  const there = ({ items }: FoundDifference) =>
    items.map(({ status, amount }) => `${status} ${displayMoney(amount)}`).join(', ') || 'nothing'
  const table = out.table(differing, [
    { title: 'What', cell: ({ ours }) => ours.kind },
    { title: 'Id', cell: ({ ours }) => ours.id },
    { title: 'Difference', flexible: true, cell: ({ differences }) => describeDifferences(differences) },
    money('Amount', ({ ours }) => ours.amount),
    { title: 'Here', cell: ({ ours }) => ours.standing },
    { title: 'There', flexible: true, cell: there },
    { title: 'Flag', cell: ({ flag }) => FLAG_WORDS[flag] },
  ])
  return [
    ...(differing.length > 0 ? [...table, ''] : []),
    `${compared} compared, ${differing.length} differ, ${unanswered.length} could not be asked about.`,
  ]
}

/** What the processor has and no call of ours made. */
function unknownLines(records: readonly HeldRecord[], out: Output): string[] {
  const amountText = ({ amount }: HeldRecord) => (amount === null ? 'unreadable' : displayMoney(amount))
  const table = out.table(records, [
    { title: 'At the processor, not ours', cell: ({ type }) => type },
    { title: 'Amount', right: true, cell: amountText },
    { title: 'Id', flexible: true, cell: ({ id }) => id },
    { title: 'Status', cell: ({ status }) => status },
    out.moment('Made', ({ at }) => Date.parse(at)),
  ])
  return records.length === 0 ? [] : ['', ...table]
}

function wireRecord({ id, attemptId, type, amount, status, at }: HeldRecord) {
  return { id, request_id: attemptId, type, amount: amount === null ? null : formatMoney(amount), status, at }
}

const FLAG_WORDS: Record<FoundDifference['flag'], string> = {
  raised: 'raised now',
  refreshed: 'open already',
  known: 'resolved by a person before',
}

function reconciliationDocument(outcome: ReconcileOutcome, since: number | null) {
  return {
    since: wireTime(since),
    compared: outcome.compared,
    complete: outcome.complete,
    currency: CURRENCY,
    items: outcome.differing.map(({ ours: { kind, id, standing, amount, processorId }, ...found }) => ({
      kind,
      id,
      standing,
      amount: formatMoney(amount),
      processor_id: processorId,
      differences: found.differences,
      flag: found.flag,
      theirs: found.items.map(({ id, amount, currency, status }) => {
        return { id, amount: formatMoney(amount), currency, status }
      }),
    })),
    unanswered: outcome.unanswered,
  }
}
