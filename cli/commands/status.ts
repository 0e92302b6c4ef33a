import type { Command } from 'commander'
import { exampleText, lazy, wholeNumber } from '../command.ts'

const actions = lazy(() => import('./status.actions.ts'))

export function addStatusCommand(program: Command): void {
  program
    .command('status')
    .description(
      'where everything stands, on one screen: inbox, sales, cycles, payouts, flags, schedule, database',
    )
    .option('--watch', 'go on showing it until Ctrl-C; with --json one document a line')
    .option('--every <seconds>', 'how often --watch looks', wholeNumber(1, 3600), 2)
    .addHelpText('after', exampleText('status', 'status --watch --every 5'))
    .action(actions.status)
}
