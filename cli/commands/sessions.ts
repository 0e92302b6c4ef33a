import { type CliCommand, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./sessions.actions.ts'))

export function addSessionCommands(program: CliCommand): void {
  const group = program.subcommand('sessions', 'where an account is logged in: list its sessions, end them')
  group
    .subcommand('list', "an account's open sessions, newest first")
    .argument('<user>', 'id or e-mail')
    .paged()
    .examples('sessions list creator@example.com')
    .action(actions.list)
  group
    .subcommand('end', 'log an account out: one of its sessions, or all')
    .argument('<user>', 'id or e-mail')
    .argument('[session]', 'id of the one to end; all unless given', idOf('session'))
    .examples('sessions end creator@example.com --yes')
    .action(actions.end)
}
