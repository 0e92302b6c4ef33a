import type { Command } from 'commander'
import { addGroup, addPageOptions, exampleText, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./sessions.actions.ts'))

export function addSessionCommands(program: Command): void {
  const group = addGroup(program, 'sessions', 'where an account is logged in: list its sessions, end them')
  addPageOptions(
    group
      .command('list')
      .description("an account's open sessions, newest first")
      .argument('<user>', 'id or e-mail'),
  )
    .addHelpText('after', exampleText('sessions list creator@example.com'))
    .action(actions.list)
  group
    .command('end')
    .description('log an account out: one of its sessions, or all')
    .argument('<user>', 'id or e-mail')
    .argument('[session]', 'id of the one to end; all unless given', idOf('session'))
    .addHelpText('after', exampleText('sessions end creator@example.com --yes'))
    .action(actions.end)
}
