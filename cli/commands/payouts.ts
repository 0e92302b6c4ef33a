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
${exampleText(`payouts retry ${EXAMPLE_ID} --reason 'IBAN corrected' --yes`)}`,
    )
    .action(actions.retry)
}
