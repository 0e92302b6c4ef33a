import { type CliCommand, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./applications.actions.ts'))

export function addApplicationCommands(program: CliCommand): void {
  const group = program.subcommand('applications', "creators' applications to offers")
  group
    .subcommand('list', 'the newest applications, decided or not')
    .option('--merchant <user>', "to one merchant's offers, by id or e-mail")
    .option('--creator <user>', 'of one creator, by id or e-mail')
    .option('--offer <id>', 'to one offer', idOf('offer'))
    .choice('--status <status>', 'pending, approved or rejected')
    .paged()
    .examples('applications list --status pending')
    .action(actions.list)
}
