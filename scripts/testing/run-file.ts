import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { TestFile } from './find-tests.ts'
import { endGroup, isEmptyWithin } from './process-group.ts'
import { readSkipReasons, readTally, splitOutput, type Tally } from './uvu-output.ts'

const REPORT_CPU = fileURLToPath(new URL('report-cpu.ts', import.meta.url))
const SHARED_PROCESS = fileURLToPath(new URL('shared-process.ts', import.meta.url))

/** How long the children of a file that has ended have for their last steps, ms: a hundred times the usual. */
const LAST_STEPS_MS = 20_000

/** Most code of a test runs too few times for the optimizing compiler to pay, and threads for garbage only compete with other tests. */
const FOR_SHORT_RUNS = ['--no-turbofan', '--single-threaded-gc', '--max-semi-space-size=32']

/** How much longer than one file a process with several may take. */
const GROUP_LIMIT_FACTOR = 2

/** Characters of output kept of one process; earlier output is dropped. */
const OUTPUT_LIMIT = 4_000_000

export interface FileResult {
  path: string
  passed: number
  failed: number
  skipped: number
  skipReasons: string[]
  /** A failure outside its tests, e.g. a crash; counts as one failure. */
  problem: string | null
  output: string
  /** Wall-clock time, ms. */
  took: number
  /** Processor time of the file's processes, ms; `null` when they did not end by themselves. */
  cpu: number | null
}

export interface FileSetting {
  root: string
  env: NodeJS.ProcessEnv
  /** Aborted on Ctrl-C: the file's processes are ended. */
  signal: AbortSignal
  /** Called with each piece of output, e.g. to show progress. */
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
  const flags = setting.env.PROOF_FORM ? [] : FOR_SHORT_RUNS
  const { ending, output, cpu } = await runProcess([...flags, file.path], file.limit, setting)
  return resultOf(file, ending, output, performance.now() - started, cpu)
}

/** Runs a file in its own process, or several together. */
export async function runGroup(files: TestFile[], setting: FileSetting): Promise<FileResult[]> {
  const [first] = files
  return first && files.length === 1 ? [await runFile(first, setting)] : runTogether(files, setting)
}

/**
 * Runs test files one after the other in one process, which starts and loads the code only once. If anything fails, each file runs
 * again in a process of its own, and those results are reported. If all of them pass alone, the file that failed beside the others
 * still counts as failed.
 */
async function runTogether(files: TestFile[], setting: FileSetting): Promise<FileResult[]> {
  const paths = files.map(({ path }) => path)
  const limit = GROUP_LIMIT_FACTOR * Math.max(...files.map((file) => file.limit))
  const { ending, output } = await runProcess([...FOR_SHORT_RUNS, SHARED_PROCESS, ...paths], limit, setting)
  const { ended, rest } = splitOutput(output)
  const together = files.map((file, at) => {
    const { text, took, cpu } = ended[at] ?? { text: '', took: 0, cpu: 0 }
    // How the process ends is known to concern a file only if that is the last one.
    return resultOf(file, at === files.length - 1 ? ending : FINE, text, took, cpu)
  })
  const broken = together.findIndex(({ failed }) => failed > 0)
  if (broken < 0) return together
  const alone: FileResult[] = []
  for (const file of files) alone.push(await runFile(file, setting))
  const suspect = alone[broken]
  if (suspect && alone.every(({ failed }) => failed === 0)) {
    const others = paths.filter((path) => path !== suspect.path).join(', ')
    const problem = `passes alone, but not in one process with ${others}: clean up, or mark it "// own process"`
    alone[broken] = { ...suspect, failed: 1, problem, output: together[broken]?.output || rest }
  }
  return alone
}

function resultOf(
  file: TestFile,
  ending: Ending,
  output: string,
  took: number,
  cpu: number | null,
): FileResult {
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
    took,
    cpu,
  }
}

/** Runs Node with these arguments in a process group of its own. */
async function runProcess(
  args: string[],
  limit: number,
  { root, env, signal, onOutput }: FileSetting,
): Promise<{ ending: Ending; output: string; cpu: number | null }> {
  const folder = await mkdtemp(join(tmpdir(), 'affiliate-test-file-'))
  const cpuFile = join(folder, 'cpu')
  const child = spawn(process.execPath, ['--import', REPORT_CPU, ...args], {
    cwd: root,
    env: { ...env, TEST_CPU_FILE: cpuFile },
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
  if (group === undefined) return { ending: { ...FINE, stopped: 'could not be started' }, output, cpu: null }
  let stopped: string | null = null
  const stop = (why: string) => {
    stopped ??= why
    void endGroup(group)
  }
  const timer = setTimeout(stop, limit, `did not end within ${limit / 1000} s`)
  const interrupt = () => stop('was interrupted')
  signal.addEventListener('abort', interrupt, { once: true })
  if (signal.aborted) interrupt()

  const [code, killedBy] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  clearTimeout(timer)
  signal.removeEventListener('abort', interrupt)
  const leftovers = !(await isEmptyWithin(group, Math.min(LAST_STEPS_MS, limit)))
  if (leftovers) await endGroup(group)
  // A process outside of the group may hold the output open.
  await Promise.race([closed, sleep(LAST_STEPS_MS, undefined, { ref: false })])
  child.stdout.destroy()
  child.stderr.destroy()
  const cpu = Number(await readFile(cpuFile, 'utf8').catch(() => '')) || null
  await rm(folder, { recursive: true, force: true })
  return { ending: { code, killedBy, stopped, leftovers }, output, cpu }
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
