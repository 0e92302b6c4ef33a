import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestFile } from './find-tests.ts'
import { endGroup, isEmptyWithin } from './process-group.ts'
import { readSkipReasons, readTally, type Tally } from './uvu-output.ts'

/** Characters of output kept of one file; what came before them is dropped. */
const OUTPUT_LIMIT = 4_000_000

export interface FileResult {
  path: string
  passed: number
  failed: number
  skipped: number
  skipReasons: string[]
  /** What went wrong beside its tests, e.g. that the file crashed; it counts as one failure. */
  problem: string | null
  output: string
  /** Milliseconds. */
  took: number
}

export interface FileSetting {
  root: string
  env: NodeJS.ProcessEnv
  /** Aborted on Ctrl-C: the file's processes are ended at once. */
  signal: AbortSignal
  /** Told each piece of output as it comes, e.g. to show progress. */
  onOutput?: (chunk: string) => void
}

interface Ending {
  code: number | null
  killedBy: NodeJS.Signals | null
  stopped: string | null
  leftovers: boolean
}

/** Runs one test file in a process group of its own and counts its tests. Never throws for what the file does. */
export async function runFile(file: TestFile, setting: FileSetting): Promise<FileResult> {
  const started = performance.now()
  const { ending, output } = await runProcess(file, setting)
  const tally = readTally(output)
  const problem = problemOf(ending, tally)
  const { total, passed, skipped } = tally ?? { total: 0, passed: 0, skipped: 0 }
  return {
    path: file.path,
    passed,
    failed: total - passed + (problem ? 1 : 0),
    skipped,
    skipReasons: skipped > 0 ? [...file.skips, ...readSkipReasons(output)] : [],
    problem,
    output,
    took: performance.now() - started,
  }
}

async function runProcess(
  file: TestFile,
  { root, env, signal, onOutput }: FileSetting,
): Promise<{ ending: Ending; output: string }> {
  const child = spawn(process.execPath, [file.path], {
    cwd: root,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const collect = (chunk: string) => {
    output = (output + chunk).slice(-OUTPUT_LIMIT)
    onOutput?.(chunk)
  }
  child.stdout.setEncoding('utf8').on('data', collect)
  child.stderr.setEncoding('utf8').on('data', collect)
  const closed = once(child, 'close').catch(() => undefined)

  const group = child.pid
  if (group === undefined) return { ending: { ...FINE, stopped: 'could not be started' }, output }
  let stopped: string | null = null
  const stop = (why: string) => {
    stopped ??= why
    void endGroup(group)
  }
  const timer = setTimeout(stop, file.limit, `did not end within ${file.limit / 1000} s`)
  const interrupt = () => stop('was interrupted')
  signal.addEventListener('abort', interrupt, { once: true })
  if (signal.aborted) interrupt()

  const [code, killedBy] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  clearTimeout(timer)
  signal.removeEventListener('abort', interrupt)
  const leftovers = !(await isEmptyWithin(group))
  if (leftovers) await endGroup(group)
  await Promise.race([closed, sleep(1000, undefined, { ref: false })])
  child.stdout.destroy()
  child.stderr.destroy()
  return { ending: { code, killedBy, stopped, leftovers }, output }
}

const FINE: Ending = { code: 0, killedBy: null, stopped: null, leftovers: false }

function problemOf({ code, killedBy, stopped, leftovers }: Ending, tally: Tally | null): string | null {
  if (stopped) return stopped
  if (killedBy) return `crashed: killed by ${killedBy}`
  if (!tally && code !== 0) return `crashed: exit code ${code} before its tests had finished`
  if (!tally || tally.total + tally.skipped === 0) return 'ran no tests (does it call run() on its suites?)'
  if (code !== 0 && tally.passed === tally.total)
    return `ended with exit code ${code} although its tests passed`
  if (leftovers) return 'left processes running'
  return null
}
