import type { Command } from 'commander'
import { exampleText, lazy } from '../command.ts'

const actions = lazy(() => import('./serve.actions.ts'))

export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('run the service: web, worker, scheduler and the sandbox processor, as ROLES says')
    .option('--seed', 'fill an empty development database first, as "affiliate seed" does')
    .addHelpText(
      'after',
      exampleText('serve', 'serve --seed', 'serve --database-url postgres://affiliate@localhost/affiliate'),
    )
    .action(actions.serve)
}
