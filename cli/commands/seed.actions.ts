import type { Command } from 'commander'
import { openApp } from '../../server/app.ts'
import { migrate } from '../../server/migrator.ts'
import { checkAppKey } from '../../server/platform/crypto/key-mark.ts'
import { migrationState } from '../../server/platform/database/migration-state.ts'
import { isSeeded } from '../../server/production-mark.ts'
import { type CommandContext, openContext } from '../context.ts'
import {
  MovingClock,
  refuseProductionSettings,
  refuseUsedDatabase,
  SEEDED_ACCOUNTS,
  type Seeded,
  type SeededAccounts,
  seed,
  storyStart,
} from '../seed/seed.ts'

export async function seedCommand(_options: object, command: Command): Promise<void> {
  const context = openContext(command)
  const seeded = await seedDatabase(context)
  context.out.show({ ...seeded }, () => [...seededLines(seeded), '', 'Start the service: npm start'])
}

/**
 * Migrates and fills the database of these settings. Refuses production and a database in use, and then writes nothing. With `again` a
 * database that was seeded before is left as it is.
 */
export async function seedDatabase(context: CommandContext): Promise<Seeded>
export async function seedDatabase(context: CommandContext, again: true): Promise<Seeded | SeededAccounts>
export async function seedDatabase({ environment: given, out }: CommandContext, again = false) {
  const now = Date.now()
  // The mails of a week that is over would be too late to send.
  const environment: NodeJS.ProcessEnv = { ...given, SMTP_URL: 'off' }
  const clock = new MovingClock(storyStart(now))
  const logLevel = environment.LOG_LEVEL || 'silent'
  const app = await openApp({ create: true, environment, clock, logLevel })
  try {
    refuseProductionSettings(app)
    if ((await migrationState(app.database)).executed.length > 0) {
      if (again && (await isSeeded(app.database.reader))) return SEEDED_ACCOUNTS
      await refuseUsedDatabase(app)
    }
    out.progress('filling the database')
    await migrate(app.database)
    await checkAppKey(app.database, app.platform.vault)
    return await seed(app, clock, now)
  } finally {
    out.endProgress()
    await app.close()
  }
}

/** What was made, for people. */
function seededLines({ accounts, password, offers, slugs, clicks, orders }: Seeded): string[] {
  return [
    `Seeded: ${offers} offers, ${slugs.length} links, ${clicks} clicks, ${orders} orders.`,
    ...accountLines({ accounts, password }),
  ]
}

/** The accounts and their password, for people. */
export function accountLines({
  accounts,
  password,
}: Pick<SeededAccounts, 'accounts' | 'password'>): string[] {
  return [
    ...accounts.map(({ role, email }) => nameLine(role, email)),
    nameLine('password', `${password} (of every account)`),
  ]
}

export function nameLine(name: string, value: string): string {
  return `  ${name.padEnd(13)} ${value}`
}
