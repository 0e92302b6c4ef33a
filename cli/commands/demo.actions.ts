import type { Command } from 'commander'
import type { GlobalOptions } from '../command.ts'
import type { DemoProcessorName } from '../demo/demo-processor.ts'
import { DemoStopped } from '../demo/demo-service.ts'
import { painter } from '../demo/report.ts'
import { type DemoResult, runDemo } from '../demo/run-demo.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { layoutOf } from '../terminal/output.ts'
import { printJson, printLines } from '../terminal/printable-text.ts'

type DemoCommandOptions = GlobalOptions & { processor: DemoProcessorName; keep?: boolean }

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
  // Also after these signals the demo is cleaned up.
  const controller = new AbortController()
  const abort = () => controller.abort()
  for (const name of INTERRUPTIONS) process.on(name, abort)
  const { signal } = controller
  const result = await runDemo({ print, paint, processor, keep, signal }).catch((error: unknown) => {
    if (signal.aborted) throw new Failure('The demo was interrupted; nothing of it is left.')
    throw error instanceof DemoStopped ? new Failure(`The demo cannot go on: ${error.message}`) : error
  })
  for (const name of INTERRUPTIONS) process.off(name, abort)
  if (json) printJson(result, 2)
  const failed = result.checks.filter((check) => !check.ok)
  const passed = result.checks.length - failed.length
  const verdict = `${passed} of ${result.checks.length} checks passed, in ${(result.took_ms / 1000).toFixed(1)} s.`
  print(`\n${paint(result.ok ? 'green' : 'red', verdict)}`)
  if (result.kept && !json) for (const line of keptLines(result.kept)) print(line)
  if (result.ok) return
  throw new Failure(`These checks of the demo failed: ${failed.map(({ name }) => name).join(', ')}.`)
}

const INTERRUPTIONS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

type Kept = NonNullable<DemoResult['kept']>

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
