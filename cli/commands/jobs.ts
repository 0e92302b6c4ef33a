import type { Command } from 'commander'
import { addGroup, addPageOptions, exampleText, lazy } from '../command.ts'

const actions = lazy(() => import('./jobs.actions.ts'))

export function addJobCommands(program: Command): void {
  const group = addGroup(program, 'jobs', 'exports that users started')
  addPageOptions(group.command('list').description('the newest jobs, how far they are, and what went wrong'))
    .addHelpText('after', exampleText('jobs list', 'jobs list --limit 10 --json'))
    .action(actions.list)
}
