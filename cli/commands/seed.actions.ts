import type { Command } from 'commander'
import { openApp } from '../../server/app.ts'
import { migrate } from '../../server/migrator.ts'
import { checkAppKey } from '../../server/platform/crypto/key-mark.ts'
import { migrationState } from '../../server/platform/database/migration-state.ts'
import { type CommandContext, openContext } from '../context.ts'
import {
  MovingClock,
  refuseProductionSettings,
  refuseUsedDatabase,
  type Seeded,
  seed,
  storyStart,
} from '../seed/seed.ts'

export async function seedCommand(_options: object, command: Command): Promise<void> {
  const context = openContext(command)
  const seeded = await seedDatabase(context)
  context.out.show({ ...seeded }, () => [...seededLines(seeded), '', 'Start the service: npm start'])
}

/** Migrates and fills the database of these settings. Refuses production and a database in use, and then writes nothing. */
export async function seedDatabase({ environment: given, out }: CommandContext): Promise<Seeded> {
  const now = Date.now()
  // The mails of a week that is over would be too late to send.
  const environment: NodeJS.ProcessEnv = { ...given, SMTP_URL: 'off' }
  const clock = new MovingClock(storyStart(now))
  const logLevel = environment.LOG_LEVEL || 'silent'
  const app = await openApp({ create: true, environment, clock, logLevel })
  try {
    refuseProductionSettings(app)
    if ((await migrationState(app.database)).executed.length > 0) await refuseUsedDatabase(app)
    out.progress('filling the database')
    await migrate(app.database)
    await checkAppKey(app.database, app.platform.vault)
    return await seed(app, clock, now)
  } finally {
    out.endProgress()
    await app.close()
  }
}

/** What was made, for people. `at`: where the service, which has the practice shop, listens and where to begin. */
export function seededLines(
  { accounts, password, offers, slugs, clicks, orders }: Seeded,
  at: { url: string; start: string } | null = null,
): string[] {
  const row = (name: string, value: string) => `  ${name.padEnd(13)} ${value}`
  const made = `Seeded: ${offers} offers, ${slugs.length} links, ${clicks} clicks, ${orders} orders.`
  return [
    ...(at ? [row('open', at.start)] : [made]),
    ...accounts.map(({ role, email }) => row(role, email)),
    row('password', `${password} (of every account)`),
    ...(at
      ? [
          row('practice shop', `${at.url}/practice`),
          '',
          "Buy in the practice shop by a creator's link: the sale appears at once, and within a minute",
          'its billing cycle is paid and the creator has the payout.',
        ]
      : []),
  ]
}
