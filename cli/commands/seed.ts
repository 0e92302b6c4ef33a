import type { Command } from 'commander'
import { exampleText } from '../command.ts'
import { type CommandContext, openContext } from '../context.ts'
import type { Seeded } from '../seed/seed.ts'

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
    .action(async (_options: object, command: Command) => {
      const context = await openContext(command)
      const seeded = await seedDatabase(context)
      context.out.show({ ...seeded }, () => [...seededLines(seeded), '', 'Start the service: npm start'])
    })
}

/** Migrates and fills the database of these settings. Refuses production and a database in use, and then writes nothing. */
export async function seedDatabase({ environment, out }: CommandContext): Promise<Seeded> {
  const { openApp } = await import('../../server/app.ts')
  const { MovingClock } = await import('../seed/moving-clock.ts')
  const { refuseProductionSettings, refuseUsedDatabase, seed, storyStart } = await import('../seed/seed.ts')
  const now = Date.now()
  const clock = new MovingClock(storyStart(now))
  const app = await openApp({
    create: true,
    environment,
    clock,
    logLevel: environment.LOG_LEVEL || 'silent',
  })
  try {
    refuseProductionSettings(app)
    const { migrationState } = await import('../../server/platform/database/migration-state.ts')
    if ((await migrationState(app.database)).executed.length > 0) await refuseUsedDatabase(app)
    const { migrate } = await import('../../server/migrator.ts')
    const { checkAppKey } = await import('../../server/platform/crypto/app-key-check.ts')
    const { loadOrm } = await import('../../server/platform/database/entities.ts')
    out.progress('filling the database')
    await migrate(app.database)
    await checkAppKey(app.database, app.platform.vault)
    await loadOrm(app.database.dialect)
    return await seed(app, clock, now)
  } finally {
    out.endProgress()
    await app.close()
  }
}

/** What was made, for people. `base` is where the service listens. */
export function seededLines(
  { accounts, password, offers, slugs, clicks, orders }: Seeded,
  base: string | null = null,
): string[] {
  const row = (name: string, value: string) => `  ${name.padEnd(9)} ${value}`
  return [
    `Seeded: ${offers} offers, ${slugs.length} links, ${clicks} clicks, ${orders} orders.`,
    ...accounts.map(({ role, email }) => row(role, email)),
    row('password', `${password} (of every account)`),
    ...slugs.slice(0, 1).map((slug) => row('link', `${base ?? ''}/go/${slug}`)),
  ]
}
