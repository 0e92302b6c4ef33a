import type { Command } from 'commander'
import { exampleText, lazy } from '../command.ts'

const actions = lazy(() => import('./seed.actions.ts'))

export function addSeedCommand(program: Command): void {
  program
    .command('seed')
    .description('fill an empty development database: a merchant, creators, offers, links, a week of sales')
    .addHelpText(
      'after',
      `
The accounts have a password that is printed and public. Production refuses a seeded database for good.
${exampleText('seed', 'seed --database-url sqlite:./data/try.db')}`,
    )
    .action(actions.seedCommand)
}
