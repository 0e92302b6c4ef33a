import type { Command } from 'commander'
import { exampleText, type GlobalOptions, oneOf } from '../command.ts'
import type { DemoProcessorName } from '../demo/demo-processor.ts'
import type { DemoResult, Kept } from '../demo/run-demo.ts'
import { Failure, wrongUsage } from '../failures.ts'

interface DemoCommandOptions extends GlobalOptions {
  processor: DemoProcessorName
  keep?: boolean
}

const PROCESSORS: readonly DemoProcessorName[] = ['sandbox', 'safepay-raast']

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('show the whole chain at work on a server of its own: from a store’s order to a paid payout')
    .option(
      '--processor <name>',
      'sandbox, or safepay-raast: a double of Safepay on this machine, by the SAFEPAY_* settings of the environment',
      oneOf(PROCESSORS),
      'sandbox',
    )
    .option('--keep', 'leave the server running, and print its addresses and credentials')
    .addHelpText(
      'after',
      `
Starts the real server on free ports over a temporary database, acts as merchant, creators, visitors and store, and
ends with statements that add up by hand. Exit code 0 means that every check passed. Leaves nothing
behind unless --keep is given.

--processor safepay-raast needs a double of Safepay on this machine: see "Try it" in the guide "safepay". Nothing is
sent to Safepay itself.
${exampleText('demo', 'demo --keep', 'demo --processor safepay-raast', 'demo --json')}`,
    )
    .action(demo)
}

async function demo(_options: DemoCommandOptions, command: Command): Promise<void> {
  const { json = false, keep = false, processor, databaseUrl } = command.optsWithGlobals<DemoCommandOptions>()
  if (databaseUrl !== undefined) {
    throw wrongUsage('demo makes a database of its own; --database-url has no place there.')
  }
  const { runDemo } = await import('../demo/run-demo.ts')
  const { painter } = await import('../demo/report.ts')
  const { layoutOf } = await import('../terminal/output.ts')
  const { printJson, printLines } = await import('../terminal/printable-text.ts')
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
  const { DemoStopped } = await import('../demo/demo-service.ts')
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
