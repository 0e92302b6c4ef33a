import { commandNames } from '../command.ts'
import { reportFailure } from '../failures.ts'
import { buildProgram, helpArguments } from '../program.ts'
import { APP_KEY, type Ended } from './run-affiliate.ts'

/** No signal ends it, so there is always a code. */
export type EndedHere = Ended & { code: number }

/** Commands write to the process's own streams and read its environment, so they take turns. */
let turn: Promise<unknown> = Promise.resolve()

/**
 * Runs a command line in this process, as `cli/main.ts` does: for tests of what commands do, many times as fast as a process of
 * its own. There is no prompt.
 */
export function runHere(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<EndedHere> {
  const run = turn.then(() => runNow(args, { APP_KEY, ...environment }))
  turn = run.catch(() => undefined)
  return run
}

async function runNow(args: readonly string[], environment: Record<string, string>): Promise<EndedHere> {
  const ended: EndedHere = { code: 0, stdout: '', stderr: '' }
  const writes = { stdout: process.stdout.write, stderr: process.stderr.write }
  const before = { ...process.env }
  const program = buildProgram()
  Object.assign(process.env, environment)
  Object.defineProperty(process.stdin, 'isTTY', { value: false, configurable: true })
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].write = (text: string | Uint8Array) => {
      ended[name] += String(text)
      return true
    }
  }
  try {
    await program.parseAsync(helpArguments(args), { from: 'user' })
  } catch (error) {
    ended.code = await reportFailure(error, args, commandNames(program))
  } finally {
    Object.assign(process.stdout, { write: writes.stdout })
    Object.assign(process.stderr, { write: writes.stderr })
    for (const name of Object.keys(environment)) {
      if (before[name] === undefined) delete process.env[name]
      else process.env[name] = before[name]
    }
  }
  // A command may also end well and say by the exit code that not all is well.
  ended.code ||= Number(process.exitCode ?? 0)
  process.exitCode = undefined
  return ended
}
