import type { Command } from 'commander'
import type { App } from '../../../server/app.ts'
import { exampleText, type GlobalOptions, wholeNumber } from '../../command.ts'
import { type CommandContext, READS, serviceEnvironment, withApp } from '../../context.ts'
import { printJson } from '../../terminal/printable-text.ts'

interface StatusOptions {
  watch?: boolean
  every: number
}

export function addStatusCommand(program: Command): void {
  program
    .command('status')
    .description(
      'where everything stands, on one screen: inbox, sales, cycles, payouts, flags, schedule, database',
    )
    .option('--watch', 'go on showing it until Ctrl-C; with --json one document a line')
    .option('--every <seconds>', 'how often --watch looks', wholeNumber(1, 3600), 2)
    .addHelpText('after', exampleText('status', 'status --watch --every 5'))
    .action((options: StatusOptions, command: Command) => status(options, command))
}

function status(options: StatusOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async (context) => (options.watch ? watch(context, options.every) : showOnce(context, command)),
    READS,
  )
}

async function showOnce(context: CommandContext & { app: App }, command: Command): Promise<void> {
  const { readStatus, statusLines, wireStatus } = await import('./status-report.ts')
  const { readConfig } = await import('../../../server/platform/config.ts')
  const service = readConfig(serviceEnvironment(command.optsWithGlobals<GlobalOptions>()))
  const status = await readStatus(context, service)
  context.out.show(wireStatus(status), () => statusLines(context.out, status))
}

async function watch(context: CommandContext & { app: App }, everySeconds: number): Promise<void> {
  const { readStatus, statusLines, wireStatus } = await import('./status-report.ts')
  const { Screen } = await import('../../terminal/screen.ts')
  const { setTimeout: pause } = await import('node:timers/promises')
  const { out } = context
  const end = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end.abort())
  const screen = !out.json && Screen.isThere(context.environment) ? new Screen() : null
  try {
    while (!end.signal.aborted) {
      const status = await readStatus(context)
      if (out.json) printJson(wireStatus(status))
      else if (screen) screen.show([...statusLines(out, status), '', out.style('dim', 'Ctrl-C ends it.')])
      else out.print([...statusLines(out, status), ''])
      await pause(everySeconds * 1000, undefined, { signal: end.signal }).catch(() => undefined)
    }
  } finally {
    screen?.leave()
  }
}
