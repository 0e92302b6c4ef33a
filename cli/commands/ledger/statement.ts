import type { Command } from 'commander'
import type { Config } from '../../../server/platform/config.ts'
import { exampleText } from '../../command.ts'
import { assertMigrated, withDatabase } from '../../context.ts'
import { wrongUsage } from '../../failures.ts'

interface StatementOptions {
  from?: string
  to?: string
}

export function addStatementCommand(group: Command): void {
  group
    .command('statement')
    .description(
      "a period's statement of one account holder: opening balances, each entry, closing balances; by default this month",
    )
    .argument('<user>', 'id or e-mail of a merchant or creator, or platform')
    .option('--from <time>', 'RFC 3339, or a date: its midnight in BILLING_TIMEZONE')
    .option('--to <time>', 'the same; what happens at that moment is left out')
    .addHelpText(
      'after',
      exampleText(
        'ledger statement shop@example.com',
        'ledger statement platform --from 2026-11-01 --to 2026-12-01',
      ),
    )
    .action((user: string, options: StatementOptions, command: Command) => statement(user, options, command))
}

/** Works from the database alone, and opens it for reading only. */
function statement(user: string, options: StatementOptions, command: Command): Promise<void> {
  return withDatabase(
    command,
    async ({ config, database, out }) => {
      const period = await periodOf(options, config)
      await assertMigrated(database)
      const { findAccountHolder, readAccountStatement } = await import(
        '../../../server/users/accounts.service.ts'
      )
      const holder = await findAccountHolder(database, user)
      const { StatementOutput } = await import('./statement-output.ts')
      const output = new StatementOutput(out, holder, period)
      const summaries = await readAccountStatement(database, holder, period, {
        opening: (accounts) => output.begin(accounts),
        entry: (entry) => output.add(entry),
      })
      await output.end(summaries)
    },
    { readOnly: true },
  )
}

/** The calendar month that the given end lies in, or that is now. */
async function periodOf(options: StatementOptions, config: Config): Promise<{ from: number; to: number }> {
  const zone = config.BILLING_TIMEZONE
  const { readMoment } = await import('../../arguments.ts')
  const { calendarPeriodAt } = await import('../../../server/billing/billing-period.rule.ts')
  const given = async (text: string | undefined) => (text === undefined ? null : await readMoment(text, zone))
  const [from, to] = [await given(options.from), await given(options.to)]
  const now = Date.now()
  const month = calendarPeriodAt(to === null ? now : to - 1, 'monthly', zone)
  const period = { from: from ?? month.start, to: to ?? Math.max(month.end, (from ?? 0) + 1) }
  if (period.from < period.to) return period
  throw wrongUsage('--from must lie before --to.')
}
