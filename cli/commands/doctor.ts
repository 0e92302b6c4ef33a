import type { Command } from 'commander'
import { exampleText, lazy } from '../command.ts'

const actions = lazy(() => import('./doctor.actions.ts'))

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description(
      'check runtime, settings, database, disk, clock, secrets, processor and addresses; say how to fix each problem',
    )
    .option(
      '--after-failover',
      'also: whether acknowledged events may have been lost when a standby or a backup took over, and how to find them',
    )
    .addHelpText('after', exampleText('doctor', 'doctor --json', 'doctor --after-failover'))
    .action(actions.doctor)
}
