import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { ENTRY, environmentOf } from './run-affiliate.ts'

/** How a command ended that was interrupted. */
export interface Interrupted {
  /** As a shell tells it: a process that a signal has ended counts as 128 and the signal's number. */
  status: number | null
  stdout: string
  stderr: string
}

export interface RunningAffiliate {
  child: ChildProcess
  printed: { stdout: string; stderr: string }
  /** Resolves when `found` says so, or the command has ended. */
  until(found: () => boolean | Promise<boolean>): Promise<void>
  /** Sends what Ctrl-C sends, and waits for the end. */
  interrupt(): Promise<Interrupted>
}

const SIGINT_STATUS = 130

export function startAffiliate(
  args: readonly string[],
  environment: Record<string, string>,
  folder?: string,
): RunningAffiliate {
  const child = spawn(process.execPath, [ENTRY, ...args], { cwd: folder, env: environmentOf(environment) })
  const printed = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      printed[stream] += text
    })
  }
  const ended = once(child, 'close')
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  return {
    child,
    printed,
    async until(found) {
      await eventually(async () => hasEnded() || (await found()))
    },
    async interrupt() {
      child.kill('SIGINT')
      const [code, signal] = (await ended) as [number | null, string | null]
      const status = signal === 'SIGINT' ? SIGINT_STATUS : code
      return { status, ...printed }
    },
  }
}
