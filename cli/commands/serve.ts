import type { Command } from 'commander'
import type { Service } from '../../server/service.ts'
import { exampleText } from '../command.ts'
import { type CommandContext, databasePlace, openContext } from '../context.ts'

export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('run the service: web, worker, scheduler and the sandbox processor, as ROLES says')
    .addHelpText(
      'after',
      exampleText('serve', 'serve --database-url postgres://affiliate@localhost/affiliate'),
    )
    .action((_options: object, command: Command) => serve(command))
}

async function serve(command: Command): Promise<void> {
  const context = await openContext(command)
  const { startService } = await import('../../server/service.ts')
  const interruption = catchSignals()
  const service = await startService({ environment: context.environment })
  try {
    await announce(context, service)
    await interruption
  } finally {
    await service.stop()
  }
}

/** The terminal and npm both send a Ctrl-C: two signals within this time count as one. */
const SAME_SIGNAL_MS = 250

/** Resolves at the first signal to end; the second one ends the process at once. */
function catchSignals(): Promise<void> {
  return new Promise((resolve) => {
    let firstAt: number | null = null
    for (const [signal, number] of [['SIGINT', 2] as const, ['SIGTERM', 15] as const]) {
      process.on(signal, () => {
        if (firstAt !== null && performance.now() - firstAt > SAME_SIGNAL_MS) process.exit(128 + number)
        firstAt ??= performance.now()
        resolve()
      })
    }
  })
}

async function announce({ out, config }: CommandContext, service: Service): Promise<void> {
  const { url, sandboxUrl, migrated } = service
  const database = await databasePlace(config)
  const { resolve } = await import('node:path')
  const { dataFolder } = await import('../../server/platform/config.ts')
  const folder = resolve(dataFolder(config))
  const document = {
    url,
    openapi_url: url && `${url}/openapi.json`,
    sandbox_url: sandboxUrl,
    database,
    data_folder: folder,
    roles: config.ROLES,
    migrated,
  }
  out.show(document, () => {
    const places: [string, string | null][] = [
      ['Service', url],
      ['OpenAPI', document.openapi_url],
      ['Sandbox processor', sandboxUrl],
      ['Database', migrated.length > 0 ? `${database} (${migrated.length} migrations applied)` : database],
      ['Keys and files', folder],
      ['Roles', config.ROLES.join(', ')],
    ]
    const steps = [
      ['npm run demo', 'one order all the way to a paid payout, over a database of its own'],
      ['npx affiliate users create-admin you@example.com --password-stdin', 'an admin account'],
      ['npx affiliate webhooks fixtures', 'signed orders to send to this service, and what they lead to'],
      ['npx affiliate --help', 'everything else an operator does'],
    ] as const
    return [
      out.heading('The affiliate marketplace is running. Ctrl-C ends it.'),
      '',
      ...places.flatMap(([name, place]) => (place === null ? [] : [`  ${name.padEnd(18)} ${place}`])),
      '',
      out.heading('What to do next, in another terminal'),
      ...steps.flatMap(([line, what]) => [`  ${line}`, `      ${out.style('dim', what)}`]),
    ]
  })
}
