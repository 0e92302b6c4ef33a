import type { Command } from 'commander'
import type { GlobalOptions } from '../command.ts'
import type { DemoProcessorName } from '../demo/demo-processor.ts'
import { DemoStopped } from '../demo/demo-service.ts'
import { painter } from '../demo/report.ts'
import { type DemoResult, type Kept, runDemo } from '../demo/run-demo.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { layoutOf } from '../terminal/output.ts'
import { printJson, printLines } from '../terminal/printable-text.ts'

interface DemoCommandOptions extends GlobalOptions {
  processor: DemoProcessorName
  keep?: boolean
}

export async function demo(_options: DemoCommandOptions, command: Command): Promise<void> {
  const { json = false, keep = false, processor, databaseUrl } = command.optsWithGlobals<DemoCommandOptions>()
  if (databaseUrl !== undefined) {
    throw wrongUsage('demo makes a database of its own; --database-url has no place there.')
  }
  const stream = json ? process.stderr : process.stdout
  const paint = painter(layoutOf(stream, process.env).colour)
  const print = (line: string) => {
    // With --json the steps are only progress.
    if (!json || stream.isTTY) printLines(line.split('\n'), stream)
  }
  const result = await untilInterrupted((signal) => runDemo({ print, paint, processor, keep, signal }))
  if (json) printJson(result, 2)
  print(`\n${paint(result.ok ? 'green' : 'red', verdict(result))}`)
  if (result.kept && !json) for (const line of keptLines(result.kept)) print(line)
  if (!result.ok) {
    const wrong = result.checks.filter((check) => !check.ok).map((check) => check.name)
    throw new Failure(`These checks of the demo failed: ${wrong.join(', ')}.`)
  }
}

const INTERRUPTIONS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Also after these signals the demo is cleaned up. */
async function untilInterrupted(work: (signal: AbortSignal) => Promise<DemoResult>): Promise<DemoResult> {
  const controller = new AbortController()
  const interrupt = () => controller.abort()
  for (const name of INTERRUPTIONS) process.on(name, interrupt)
  try {
    return await work(controller.signal)
  } catch (error) {
    if (controller.signal.aborted) throw new Failure('The demo was interrupted; nothing of it is left.')
    if (error instanceof DemoStopped) throw new Failure(`The demo cannot go on: ${error.message}`)
    throw error
  } finally {
    for (const name of INTERRUPTIONS) process.off(name, interrupt)
  }
}

function verdict({ checks, took_ms }: DemoResult): string {
  const passed = checks.filter((check) => check.ok).length
  return `${passed} of ${checks.length} checks passed, in ${(took_ms / 1000).toFixed(1)} s.`
}

function keptLines({ url, processor_url, pid, folder, database_url, accounts, store }: Kept): string[] {
  return [
    '',
    'The server goes on running, with its schedules off: cycles are closed and payouts run by command.',
    `  service    ${url}`,
    `  processor  ${processor_url}`,
    `  database   ${database_url}`,
    ...accounts.map(({ role, email, password }) => `  ${role.padEnd(9)}  ${email}  password ${password}`),
    `  store      ${store.shop_domain}  webhook secret ${store.webhook_secret}`,
    '',
    'Ask it something:',
    `  curl -s ${url}/sales -H 'Authorization: Bearer ${accounts[0]?.token}'`,
    `  ./cli/affiliate ledger balances --database-url ${database_url}`,
    '',
    'End it:',
    `  kill ${pid}; while kill -0 ${pid} 2>/dev/null; do sleep 0.1; done; rm -r ${folder}`,
  ]
}
