import type { Command } from 'commander'
import { addGroup, addPageOptions, EXAMPLE_ID, exampleText, idOf, lazy, oneOf } from '../command.ts'

const actions = lazy(() => import('./payouts.actions.ts'))

export function addPayoutCommands(program: Command): void {
  const group = addGroup(program, 'payouts', 'payouts to creators: look at them, start a run')
  addPageOptions(
    group
      .command('list')
      .description('the newest payouts')
      .option('--creator <user>', 'of one creator, by id or e-mail')
      .option(
        '--state <state>',
        'pending, submitted, paid or failed',
        oneOf(['pending', 'submitted', 'paid', 'failed']),
      ),
  )
    .addHelpText('after', exampleText('payouts list --state failed'))
    .action(actions.list)
  group
    .command('run')
    .description('make a payout of each released balance that may go out now, as the schedule does')
    .option('--dry-run', 'only show what would be done')
    .addHelpText('after', exampleText('payouts run --dry-run', 'payouts run --yes'))
<<<<<<< HEAD
    .action((options: { dryRun?: boolean }, command: Command) => run(options.dryRun ?? false, command))
}

function list(options: ListOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listPayouts } = await import('../../server/payouts/payouts.service.ts')
      const { findUser } = await import('../../server/users/users.service.ts')
      const creator = options.creator === undefined ? null : await findUser(app.platform, options.creator)
      const { items: rows, next_cursor } = await readPage(options, (request) =>
        listPayouts(app.platform, creator?.id ?? null, { state: options.state ?? null, ...request }),
      )
      const person = await peopleOf(
        app,
        rows.map((row) => row.creator_id),
      )
      const pending = rows.filter((row) => row.state === 'pending').map((row) => row.id)
      const calls = await callStates(app, 'payout', pending)
      const items = rows.map((row) => ({
        ...wirePayout(row),
        creator: person(row.creator_id),
        call: wireCall(calls.get(row.id)),
      }))
      out.showPage({ items, next_cursor }, () => payoutTable(out, rows, person, calls))
    },
    READS,
  )
}

function payoutTable(
  out: Output,
  rows: readonly PayoutRow[],
  person: (id: string) => Person,
  calls: ReadonlyMap<string, CallState>,
): string[] {
  return out.table(
    [
      { title: 'Creator', flexible: true },
      { title: 'State' },
      { title: 'Amount', right: true },
      { title: 'Made' },
      { title: 'Settled' },
      { title: 'Why', flexible: true },
      { title: 'Id' },
    ],
    rows.map((row) => [
      nameOf(person(row.creator_id)),
      row.state,
      displayMoney(row.amount),
      out.shortTime(row.created_at),
      out.shortTime(row.settled_at),
      row.failure_reason ?? callText(out, calls.get(row.id), `payouts retry ${row.id}`),
      row.id,
    ]),
  )
}

function run(dryRun: boolean, command: Command): Promise<void> {
  return withApp(
    command,
    async (context) => {
      const { app, out } = context
      const { runPayouts } = await import('../../server/payouts/payout-run.service.ts')
      const { OPERATOR } = await import('../../server/flags/audit.service.ts')
      const progress = (done: number, all: number) => out.progress(`creator ${done} of ${all}`)
      const preview = await runPayouts(app.platform, app.processor, { dryRun: true, progress })
      out.endProgress()
      const payable = preview.filter((outcome) => outcome.kind === 'paid_out')
      if (!dryRun && payable.length > 0) await confirm(context, runQuestion(payable))
      // Also where nothing is paid: what waits for a person is flagged.
      const outcomes = dryRun
        ? preview
        : await runPayouts(app.platform, app.processor, { actor: OPERATOR, progress })
      out.endProgress()
      const person = await peopleOf(
        app,
        outcomes.map((outcome) => outcome.creatorId),
      )
      const items = outcomes.map((outcome) => wireOutcome(outcome, person(outcome.creatorId)))
      out.show({ dry_run: dryRun, items }, () => runLines(context, outcomes, person, dryRun))
      failIfSomeFailed(outcomes)
    },
    { readOnly: dryRun, ...MOVES_MONEY },
  )
}

function runQuestion(payable: readonly PayoutRunOutcome[]): string {
  const total = payable.reduce((sum, outcome) => sum + outcome.amount, 0)
  const payouts = `${payable.length} payout${payable.length === 1 ? '' : 's'}`
  return `Make ${payouts}, ${displayMoney(total)} in all? It cannot be undone.`
}

function runLines(
  { out, config }: CommandContext,
  outcomes: readonly PayoutRunOutcome[],
  person: (id: string) => Person,
  dryRun: boolean,
): string[] {
  if (outcomes.length === 0) return ['No creator has a released balance.']
  const why = {
    below_threshold: `waits: below the threshold of ${displayMoney(config.PAYOUT_THRESHOLD)}`,
    suspended: 'waits: the creator is suspended',
    no_destination: 'waits: no payout destination in effect',
    destination_broken:
      'waits for a person: a payout destination of this creator was changed in the database',
    failed_three_times: 'waits for a person: three payouts failed in a row',
    failure_not_confirmed: 'waits for a person: the processor has not agreed that the last payout failed',
    processor_unavailable:
      'waits: the processor cannot be asked about the last payout or its balance; the next run asks again',
    balance_too_low: 'waits: the balance at the processor is too low for all payouts that are due',
  }
  const table = out.table(
    [{ title: 'Creator', flexible: true }, { title: 'Amount', right: true }, { title: 'What happens' }],
    outcomes.map((outcome) => [
      nameOf(person(outcome.creatorId)),
      displayMoney(outcome.amount),
      outcome.kind === 'waits'
        ? why[outcome.why]
        : outcome.kind === 'failed'
          ? 'failed'
          : dryRun
            ? 'would be paid out'
            : `payout ${outcome.payoutId}`,
    ]),
  )
  return [...table, endLine(outcomes, dryRun)]
}

function endLine(outcomes: readonly PayoutRunOutcome[], dryRun: boolean): string {
  if (dryRun) return 'Nothing was written.'
  const made = outcomes.filter(({ kind }) => kind === 'paid_out').length
  if (made === 0) return 'No payout was made.'
  return `The running service sends ${made === 1 ? 'it' : 'them'} to the processor.`
}

function wireOutcome(outcome: PayoutRunOutcome, creator: Person) {
  return {
    creator,
    outcome: outcome.kind,
    why: outcome.kind === 'waits' ? outcome.why : null,
    payout_id: outcome.kind === 'paid_out' ? outcome.payoutId : null,
    amount: formatMoney(outcome.amount),
    currency: CURRENCY,
  }
=======
    .action(actions.run)
  group
    .command('retry')
    .description('send a payout again, after the processor refused it, to the destination in force now')
    .argument('<payout>', 'its id, from "payouts list --state pending"', idOf('payout'))
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText(
      'after',
      `
The processor is asked first what it holds under this payout; only then a new call with a new key is made. A payout
that failed needs none of this: its amount is in the balance again.
$exampleText(`payouts retry ${EXAMPLE_ID} --reason 'IBAN corrected' --yes`)`,
    )
    .action(actions.retry)
>>>>>>> main
}
