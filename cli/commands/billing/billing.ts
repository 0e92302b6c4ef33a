import type { Command } from 'commander'
import type { App } from '../../../server/app.ts'
import type { CycleRow } from '../../../server/billing/billing.service.ts'
import { wireCycle } from '../../../server/billing/billing-wire.ts'
import type { CloseOutcome } from '../../../server/billing/close-cycle.service.ts'
import { CURRENCY } from '../../../shared/money.ts'
import { addGroup, exampleText, oneOf } from '../../command.ts'
import { type CommandContext, confirm, isAsked, MOVES_MONEY, READS, withApp } from '../../context.ts'
import { Failure } from '../../failures.ts'
import { addPageOptions, type PageOptions, readPage } from '../../pages.ts'
import { nameOf, type Person, peopleOf } from '../../people.ts'
import { displayMoney, formatMoney, type Output, wireTime } from '../../terminal/output.ts'
import { type CallState, callStates, callText, wireCall } from './call-state.ts'
import { addReconcileCommand } from './reconcile.ts'

interface CloseOptions {
  asOf?: string
  merchant?: string
  dryRun?: boolean
}

interface CyclesOptions extends PageOptions {
  merchant?: string
  state?: CycleRow['state']
}

export function addBillingCommands(program: Command): void {
  const group = addGroup(program, 'billing', 'billing cycles: look at them, close what is due, grant credits')
  addPageOptions(
    group
      .command('cycles')
      .description('the newest billing cycles')
      .option('--merchant <user>', 'of one merchant, by id or e-mail')
      .option('--state <state>', 'open, closed or charged', oneOf(['open', 'closed', 'charged'])),
  )
    .addHelpText('after', exampleText('billing cycles --state open'))
    .action((options: CyclesOptions, command: Command) => cycles(options, command))
  group
    .command('close')
    .description('close the cycles whose period is over; the running service then asks for their invoices')
    .option('--as-of <time>', 'RFC 3339, or a date: its midnight in BILLING_TIMEZONE; now unless given')
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .option('--dry-run', 'only show what would be done')
    .addHelpText('after', exampleText('billing close --dry-run', 'billing close --as-of 2026-12-01 --yes'))
    .action((options: CloseOptions, command: Command) => close(options, command))
  group
    .command('credit')
    .description(
      'grant a merchant a credit, used up by the next closes; the same reference again is one credit',
    )
    .argument('<merchant>', 'id or e-mail')
    .argument('<amount>', 'rupees, such as 1250.50')
    .requiredOption('--reference <text>', 'your own number for it')
    .requiredOption('--reason <text>', 'kept in the audit trail')
    .addHelpText(
      'after',
      exampleText(
        "billing credit shop@example.com 1250.50 --reference CR-17 --reason 'order #1001 returned' --yes",
      ),
    )
    .action(
      (merchant: string, amount: string, options: { reference: string; reason: string }, command: Command) =>
        credit(merchant, amount, options, command),
    )
  addReconcileCommand(group)
}

function cycles(options: CyclesOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listCycles } = await import('../../../server/billing/billing.service.ts')
      const { findUser } = await import('../../../server/users/users.service.ts')
      const merchant = options.merchant === undefined ? null : await findUser(app.platform, options.merchant)
      const { items: rows, next_cursor } = await readPage(options, (request) =>
        listCycles(app.platform, {
          merchantId: merchant?.id ?? null,
          state: options.state ?? null,
          ...request,
        }),
      )
      const person = await peopleOf(
        app,
        rows.map((row) => row.merchant_id),
      )
      const calls = await callStates(
        app,
        'invoice',
        rows.filter((row) => row.state === 'closed').map((row) => row.id),
      )
      const items = rows.map((row) => ({
        ...wireCycle(row),
        merchant: person(row.merchant_id),
        sales_count: row.sales_count,
        call: wireCall(calls.get(row.id)),
      }))
      out.showPage({ items, next_cursor }, () => cycleTable(out, rows, person, calls))
    },
    READS,
  )
}

function cycleTable(
  out: Output,
  rows: readonly CycleRow[],
  person: (id: string) => Person,
  calls: ReadonlyMap<string, CallState>,
): string[] {
  return out.table(
    [
      { title: 'Merchant', flexible: true },
      { title: 'State' },
      { title: 'From' },
      { title: 'To' },
      { title: 'Sales', right: true },
      { title: 'Commission', right: true },
      { title: 'Fee', right: true },
      { title: 'Credit', right: true },
      { title: 'Due', right: true },
      { title: 'Invoice', flexible: true },
      { title: 'Id' },
    ],
    rows.map((row) => [
      nameOf(person(row.merchant_id)),
      row.state,
      out.shortTime(row.period_start),
      out.shortTime(row.period_end),
      String(row.sales_count),
      displayMoney(row.commission_total),
      displayMoney(row.fee_total),
      displayMoney(row.credit_total),
      displayMoney(row.amount_due),
      (calls.has(row.id) ? null : row.processor_invoice_id) ??
        callText(out, calls.get(row.id), `billing reissue ${row.id}`),
      row.id,
    ]),
  )
}

function close(options: CloseOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async (context) => {
      const { app, out, config } = context
      const { readMoment } = await import('../../arguments.ts')
      const { closeDueCycles } = await import('../../../server/billing/close-cycle.service.ts')
      const { OPERATOR } = await import('../../../server/flags/audit.service.ts')
      const { findUser } = await import('../../../server/users/users.service.ts')
      const now = app.platform.clock.now()
      const asOf = options.asOf === undefined ? now : await readMoment(options.asOf, config.BILLING_TIMEZONE)
      const dryRun = options.dryRun ?? false
      const merchant = options.merchant === undefined ? null : await findUser(app.platform, options.merchant)
      const scope = { asOf, ...(merchant ? { merchantId: merchant.id } : {}) }
      const preview = await closeDueCycles(app.platform, { ...scope, dryRun: true })
      const early = await earlyLines(context, preview, now)
      const writes = !dryRun && preview.length > 0
      if (writes) {
        if (isAsked(context)) out.print(early, process.stderr)
        await confirm(context, closeQuestion(preview))
      }
      const outcomes = !writes
        ? preview
        : await closeDueCycles(app.platform, {
            ...scope,
            actor: OPERATOR,
            progress: (done, all) => out.progress(`cycle ${done} of ${all}`),
          })
      out.endProgress()
      const person = await peopleOf(
        app,
        outcomes.map((outcome) => outcome.merchantId),
      )
      const items = outcomes.map((outcome) => wireOutcome(outcome, person(outcome.merchantId)))
      out.show({ as_of: wireTime(asOf), dry_run: dryRun, items }, () => [
        ...(outcomes.length > 0 ? outcomeTable(out, outcomes, person) : []),
        ...(writes && isAsked(context) ? [] : early),
        closeSummary(outcomes, dryRun, out.time(asOf)),
      ])
      failIfSomeFailed(outcomes)
    },
    { readOnly: options.dryRun ?? false, ...MOVES_MONEY },
  )
}

/** For the exit code. */
export function failIfSomeFailed(outcomes: readonly { kind: string }[]): void {
  const failed = outcomes.filter(({ kind }) => kind === 'failed').length
  if (failed > 0) throw new Failure(`${failed} of ${outcomes.length} failed. See "affiliate flagged list".`)
}

function closeQuestion(preview: readonly CloseOutcome[]): string {
  const closed = preview.filter((outcome) => outcome.kind === 'closed')
  const due = closed.reduce((sum, outcome) => sum + outcome.amountDue, 0)
  const cycles = `${closed.length} billing cycle${closed.length === 1 ? '' : 's'}`
  const extended = preview.filter((outcome) => outcome.kind === 'extended').length
  const rest = extended === 0 ? '' : `, and extend ${extended} of less than one rupee`
  return `Close ${cycles}, ${displayMoney(due)} due in all${rest}? It cannot be undone.`
}

const MOST_NAMED = 10

/** What a close before the end of a period does to the merchant's next cycle. */
async function earlyLines(
  { app, out, config }: CommandContext & { app: App },
  preview: readonly CloseOutcome[],
  now: number,
): Promise<string[]> {
  const early = preview.filter(({ kind, periodEnd }) => kind === 'closed' && periodEnd > now)
  if (early.length === 0) return []
  const { nextCyclePeriod } = await import('../../../server/billing/billing-period.rule.ts')
  const named = early.slice(0, MOST_NAMED)
  const person = await peopleOf(
    app,
    named.map(({ merchantId }) => merchantId),
  )
  const { BILLING_PERIOD: length, BILLING_TIMEZONE: zone } = config
  const lines = named.flatMap(({ merchantId, periodEnd }) => {
    const next = nextCyclePeriod({ formerPeriodEnd: periodEnd, acceptedAt: now, length, zone })
    return [
      `  ${nameOf(person(merchantId))}: this cycle ends ${out.time(periodEnd)}.`,
      `    Next cycle: ${out.time(next.start)} to ${out.time(next.end)}.`,
    ]
  })
  const more = early.length - named.length
  return [
    'These cycles close before their period is over.',
    'Sales accepted from now on are billed in the next cycle:',
    ...lines,
    ...(more > 0 ? [`  and ${more} more`] : []),
  ]
}

function closeSummary(outcomes: readonly CloseOutcome[], dryRun: boolean, asOf: string): string {
  const closed = outcomes.filter((outcome) => outcome.kind === 'closed').length
  const extended = outcomes.filter((outcome) => outcome.kind === 'extended').length
  const failed = outcomes.length - closed - extended
  if (outcomes.length === 0) return `No open cycle ends by ${asOf}.`
  const failures = failed === 0 ? '' : `, ${failed} failed`
  const counts = `${closed} closed, ${extended} extended (less than one rupee)${failures}`
  return dryRun
    ? `Would be ${counts}. Nothing was written.`
    : `${counts}. The running service sends the invoices.`
}

function outcomeTable(
  out: Output,
  outcomes: readonly CloseOutcome[],
  person: (id: string) => Person,
): string[] {
  return out.table(
    [
      { title: 'Merchant', flexible: true },
      { title: 'Cycle' },
      { title: 'Becomes' },
      { title: 'Period ends' },
      { title: 'Sales', right: true },
      { title: 'Commission', right: true },
      { title: 'Fee', right: true },
      { title: 'Credit', right: true },
      { title: 'Due', right: true },
    ],
    outcomes.map((outcome) => [
      nameOf(person(outcome.merchantId)),
      outcome.cycleId,
      outcome.kind,
      out.time(outcome.periodEnd),
      String(outcome.salesCount),
      displayMoney(outcome.commissionTotal),
      displayMoney(outcome.feeTotal),
      displayMoney(outcome.creditTotal),
      displayMoney(outcome.amountDue),
    ]),
  )
}

function wireOutcome(outcome: CloseOutcome, merchant: Person) {
  return {
    billing_cycle_id: outcome.cycleId,
    merchant,
    outcome: outcome.kind,
    period_start: wireTime(outcome.periodStart),
    period_end: wireTime(outcome.periodEnd),
    sales_count: outcome.salesCount,
    commission_total: formatMoney(outcome.commissionTotal),
    fee_total: formatMoney(outcome.feeTotal),
    credit_total: formatMoney(outcome.creditTotal),
    amount_due: formatMoney(outcome.amountDue),
    currency: CURRENCY,
  }
}

async function credit(
  merchant: string,
  amountText: string,
  options: { reference: string; reason: string },
  command: Command,
): Promise<void> {
  const { readAmount, readLine } = await import('../../arguments.ts')
  const amount = readAmount(amountText)
  const reference = await readLine('--reference', options.reference, 100)
  const reason = await readLine('--reason', options.reason, 500)
  await withApp(
    command,
    async (context) => {
      const { app, out } = context
      const { findUser } = await import('../../../server/users/users.service.ts')
      const { grantCredit } = await import('../../../server/billing/credits.service.ts')
      const { OPERATOR } = await import('../../../server/flags/audit.service.ts')
      const user = await findUser(app.platform, merchant)
      if (user.role !== 'merchant') throw new Failure(`${user.email} is not a merchant.`)
      await confirm(context, `Credit ${displayMoney(amount)} to ${user.email}? It cannot be taken back.`)
      const granted = await grantCredit(app.platform, {
        merchantId: user.id,
        amount,
        reference,
        reason,
        actor: OPERATOR,
      })
      const document = {
        id: granted.id,
        created: granted.created,
        merchant: { id: user.id, email: user.email, display_name: user.displayName },
        amount: formatMoney(amount),
        currency: CURRENCY,
        reference,
      }
      out.show(document, () => [
        granted.created
          ? `${displayMoney(amount)} credited to ${user.email} under ${reference}.`
          : `${reference} had been credited before; nothing changed.`,
      ])
    },
    MOVES_MONEY,
  )
}
