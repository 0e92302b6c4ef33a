import { type CliCommand, lazy } from '../command.ts'

const actions = lazy(() => import('./jobs.actions.ts'))

export function addJobCommands(program: CliCommand): void {
  const group = program.subcommand('jobs', 'exports that users started')
  group
    .subcommand('list', 'the newest jobs, how far they are, and what went wrong')
    .paged()
    .examples('jobs list', 'jobs list --limit 10 --json')
    .action(actions.list)
}
