import type { Command } from 'commander'
import { readConfig } from '../../server/platform/config.ts'
import { type GlobalOptions, serviceEnvironment } from '../command.ts'
import { type AppContext, READS, repeat, withApp } from '../context.ts'
import { printJson } from '../terminal/printable-text.ts'
import { Screen } from '../terminal/screen.ts'
import { readStatus, statusLines, wireStatus } from './status-report.ts'

export function status(
  { watch: goesOn, every }: { watch?: boolean; every: number },
  command: Command,
): Promise<void> {
  return withApp(command, (context) => (goesOn ? watch(context, every) : showOnce(context, command)), READS)
}

async function showOnce(context: AppContext, command: Command): Promise<void> {
  const service = readConfig(serviceEnvironment(command.optsWithGlobals<GlobalOptions>()))
  const status = await readStatus(context, service)
  context.out.show(wireStatus(status), () => statusLines(context.out, status))
}

async function watch(context: AppContext, everySeconds: number): Promise<void> {
  const { out } = context
  const screen = !out.json && Screen.isThere(context.environment) ? new Screen() : null
  try {
    await repeat(everySeconds * 1000, async () => {
      const status = await readStatus(context)
      if (out.json) printJson(wireStatus(status))
      else if (screen) screen.show([...statusLines(out, status), '', out.style('dim', 'Ctrl-C ends it.')])
      else out.print([...statusLines(out, status), ''])
      return true
    })
  } finally {
    screen?.leave()
  }
}
