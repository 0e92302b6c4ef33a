import { once } from 'node:events'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { catchSignals, endService } from '../../server/end-on-signal.ts'
import { dataFolder } from '../../server/platform/config.ts'
import { migrationState } from '../../server/platform/database/migration-state.ts'
import { notifySystemd } from '../../server/platform/systemd.ts'
import { type Service, startService } from '../../server/service.ts'
import { type CommandContext, databasePlace, openContext } from '../context.ts'
import type { SeededAccounts } from '../seed/seed.ts'
import { accountLines, nameLine, seedDatabase } from './seed.actions.ts'

export async function serve({ seed = false }: { seed?: boolean }, command: Command): Promise<void> {
  const context = openContext(command, { service: true })
  await refuseTakenPort(context)
  const seeded = seed ? await seedDatabase(context, true) : null
  const interruption = catchSignals()
  const extend = seed ? (await import('../practice/practice-shop.ts')).addPracticeShop : undefined
  const service = await startService({ environment: context.environment, ...(extend && { extend }) })
  const { log } = service.app.platform
  let notifyStopping = async () => {}
  let signal: NodeJS.Signals | null = null
  try {
    // Lets systemd know when the service is ready and that it lives; does nothing elsewhere.
    const isHealthy = async () => (await migrationState(service.app.database)).pending.length === 0
    notifyStopping = await notifySystemd({ environment: process.env, log, isHealthy })
    announce(context, service, seeded)
    signal = await interruption
  } finally {
    await notifyStopping()
    await endService(service, signal)
  }
}

/** Throws what listening would throw, before anything is written. */
async function refuseTakenPort({ config }: CommandContext): Promise<void> {
  if (!config.ROLES.includes('web')) return
  const probe = createServer().listen(config.PORT, config.HOST)
  await once(probe, 'listening')
  probe.close()
  await once(probe, 'close')
}

type Steps = readonly (readonly [line: string, what: string])[]

const FIRST_STEPS: Steps = [
  ['npm run demo', 'one order all the way to a paid payout, over a database of its own'],
  ['./cli/affiliate users create-admin you@example.com', 'an admin account'],
  ['./cli/affiliate webhooks fixtures', 'signed orders to send to this service, with the expected results'],
  ['./cli/affiliate --help', 'all other commands'],
]

const PRODUCTION_STEPS: Steps = [
  ['affiliate doctor', 'what is left to set up'],
  ['affiliate users create-admin you@example.com', 'an admin account'],
  ['affiliate --help', 'all other commands'],
]

function announce({ out, config }: CommandContext, service: Service, seeded: SeededAccounts | null): void {
  const { url, sandboxUrl, migrated } = service
  const database = databasePlace(config)
  const folder = resolve(dataFolder(config))
  const document = {
    url,
    openapi_url: url && `${url}/openapi.json`,
    sandbox_url: sandboxUrl,
    database,
    data_folder: folder,
    roles: config.ROLES,
    migrated,
    ...(seeded && { seeded }),
  }
  const places = {
    Service: url,
    Portal: url && config.PORTAL === 'on' ? `${url}/app` : null,
    'API reference': url && `${url}/docs`,
    OpenAPI: document.openapi_url,
    'Sandbox processor': sandboxUrl,
    Database: migrated.length > 0 ? `${database} (${migrated.length} migrations applied)` : database,
    'Keys and files': folder,
    Roles: config.ROLES.join(', '),
  }
  const firstSteps = config.NODE_ENV === 'production' ? PRODUCTION_STEPS : FIRST_STEPS
  const general = () => [
    ...Object.entries(places).flatMap(([name, place]) =>
      place === null ? [] : [`  ${name.padEnd(18)} ${place}`],
    ),
    '',
    out.heading('What to do next, in another terminal'),
    ...firstSteps.flatMap(([line, what]) => [`  ${line}`, `      ${out.style('dim', what)}`]),
  ]
  out.show(document, () => [
    out.heading('The affiliate marketplace is running. Ctrl-C ends it.'),
    '',
    ...(seeded && url ? [...practiceLines(seeded, url, config.PORTAL), '', `  Data: ${folder}`] : general()),
  ])
}

/** The addresses and accounts of a seeded service, for a first look around. */
function practiceLines(seeded: SeededAccounts, url: string, portal: 'on' | 'off'): string[] {
  return [
    nameLine('open', portal === 'on' ? `${url}/app` : `${url}/docs`),
    ...accountLines(seeded),
    nameLine('practice shop', `${url}/practice`),
    '',
    "Buy in the practice shop by a creator's link: the sale appears at once, and within a minute its billing",
    'cycle is paid and the creator has the payout.',
  ]
}
