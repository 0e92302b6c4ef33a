import type { Command } from 'commander'
import { addGroup, addPageOptions, exampleText, idOf, lazy, oneOf } from '../command.ts'

const actions = lazy(() => import('./applications.actions.ts'))

export function addApplicationCommands(program: Command): void {
  const group = addGroup(program, 'applications', "creators' applications to offers")
  addPageOptions(
    group
      .command('list')
      .description('the newest applications, decided or not')
      .option('--merchant <user>', "to one merchant's offers, by id or e-mail")
      .option('--creator <user>', 'of one creator, by id or e-mail')
      .option('--offer <id>', 'to one offer', idOf('offer'))
      .option(
        '--status <status>',
        'pending, approved or rejected',
        oneOf(['pending', 'approved', 'rejected']),
      ),
  )
    .addHelpText('after', exampleText('applications list --status pending'))
    .action(actions.list)
}
