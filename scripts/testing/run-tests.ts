import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { findTests, groupTests, type TestFile } from './find-tests.ts'
import type { RunOptions } from './options.ts'
import { givenPostgres, startPostgres, type TestPostgres } from './postgres.ts'
import { countsLine, indent, printFile, printTimes, seconds, type Totals, type Write } from './report.ts'
import { type FileResult, runGroup } from './run-file.ts'
import { letThrough, makeScratch } from './scratch.ts'

interface Run {
  options: RunOptions
  write: Write
  signal: AbortSignal
  postgres: TestPostgres | null
  /** Folders of Node's raw coverage: of the rules' own tests, and of all other tests. */
  coverage: { rules: string; rest: string }
  /** `common`: files that test processes share. `temporary`: their TMPDIR. */
  folders: { common: string; temporary: string }
  totals: Totals
  results: FileResult[]
}

/** What all tests take where nothing else runs, minutes on two cores. */
const USUAL_MINUTES = 3

/**
 * Runs the test files. Writes one line per file, the output of failed files, the slowest files, and `N passed, N failed` as
 * the last line. Returns whether all passed. PostgreSQL starts only if a file may need it, while other files run.
 */
export async function runTests(options: RunOptions, write: Write, signal: AbortSignal): Promise<boolean> {
  const started = performance.now()
  const files = await findTests(options.root, options.filters)
  if (options.filters.length === 0)
    write(`All ${files.length} test files: about ${USUAL_MINUTES} minutes on two cores.`)
  const scratch = await makeScratch()
  const coverage = { rules: join(scratch, 'rules'), rest: join(scratch, 'rest') }
  const folders = { common: join(scratch, 'common'), temporary: join(scratch, 'tmp') }
  const made = [...Object.values(coverage), ...Object.values(folders)]
  await Promise.all(made.map((folder) => mkdir(folder)))
  await letThrough(folders.temporary)
  const run: Run = {
    options,
    write,
    signal,
    postgres: choosePostgres(files, options, folders.temporary),
    coverage,
    folders,
    totals: { passed: 0, failed: 0, skipped: 0 },
    results: [],
  }
  try {
    if (files.length === 0)
      fail(run, `no test file under ${options.root} matches ${options.filters.join(' ')}`)
    await runAll(run, files)
    if (options.filters.length === 0 && !signal.aborted) await judgeRuleCoverage(run)
    if (options.coverage && !signal.aborted) await reportCoverage(run)
  } finally {
    await run.postgres?.stop()
    await rm(scratch, { recursive: true, force: true })
  }
  if (signal.aborted) fail(run, 'the run was interrupted')
  write('')
  if (run.results.length > 1) printTimes(write, run.results, performance.now() - started)
  write(countsLine(run.totals))
  return run.totals.failed === 0
}

function choosePostgres(files: TestFile[], options: RunOptions, place: string): TestPostgres | null {
  if (options.sqliteOnly || !files.some((file) => file.database)) return null
  const given = process.env.TEST_POSTGRES_URL
  return given ? givenPostgres(given) : startPostgres(place)
}

/** Runs `jobs` files in parallel, plus one of those that mostly wait: they hardly use a processor. */
async function runAll(run: Run, files: TestFile[]): Promise<void> {
  const busy = groupTests(files.filter((file) => !file.waits)).values()
  const waiting = groupTests(files.filter((file) => file.waits)).values()
  const work = async (...queues: Iterable<TestFile[]>[]) => {
    for (const queue of queues) {
      for (const group of queue) {
        if (run.signal.aborted) return
        await runAndCount(run, group)
      }
    }
  }
  const lanes = Array.from({ length: run.options.jobs }, () => work(busy, waiting))
  // With one job, files run strictly one at a time.
  if (run.options.jobs > 1) lanes.push(work(waiting))
  await Promise.all(lanes)
}

async function runAndCount(run: Run, group: TestFile[]): Promise<void> {
  for (const result of await runSafely(run, group)) {
    run.totals.passed += result.passed
    run.totals.failed += result.failed
    run.totals.skipped += result.skipped
    run.results.push(result)
    printFile(run.write, result, run.options.verbose)
  }
}

async function runSafely(run: Run, group: TestFile[]): Promise<FileResult[]> {
  const [first] = group
  if (!first) return []
  try {
    const env = await environmentOf(run, first)
    const setting = { root: run.options.root, env, signal: run.signal }
    return await runGroup(group, setting)
  } catch (error) {
    const output = error instanceof Error ? error.message : String(error)
    const counts = { passed: 0, failed: 1, skipped: 0, skipReasons: [], took: 0, cpu: null }
    return group.map(({ path }) => ({ ...counts, path, problem: 'could not be run', output }))
  }
}

async function environmentOf(run: Run, file: TestFile): Promise<NodeJS.ProcessEnv> {
  const { options, postgres, coverage, folders } = run
  const { TEST_POSTGRES_URL, NODE_V8_COVERAGE, ...env } = process.env
  // Tests end services that no load balancer knows.
  env.DRAIN_SECONDS = '0'
  env.TEST_RUN_FOLDER = folders.common
  env.TMPDIR = folders.temporary
  if (options.filters.length > 0) env.TEST_NAMED_FILES = '1'
  if (options.sqliteOnly) env.TEST_SQLITE_ONLY = '1'
  else if (file.database && postgres) env.TEST_POSTGRES_URL = await postgres.url
  else if (TEST_POSTGRES_URL) env.TEST_POSTGRES_URL = TEST_POSTGRES_URL
  if (file.measured) env.NODE_V8_COVERAGE = coverage.rules
  else if (options.coverage) env.NODE_V8_COVERAGE = coverage.rest
  // Coverage is inexact for cached code.
  if (!env.NODE_V8_COVERAGE) env.NODE_COMPILE_CACHE ??= compileCache(options.root)
  return env
}

/** Compiling takes a third of a short file's time. */
export function compileCache(root: string): string {
  return join(root, 'node_modules', '.cache', 'affiliate')
}

/** Counts as one test. */
async function judgeRuleCoverage(run: Run): Promise<void> {
  const started = performance.now()
  const { checkRuleCoverage } = await import('./rule-coverage.ts')
  const { files, shortfalls } = await checkRuleCoverage(run.options.root, run.coverage.rules)
  if (files === 0) return
  const name = `coverage of ${files} rule and shared files by their own tests`
  if (shortfalls.length > 0) return fail(run, `${name}\n${indent(shortfalls.join('\n'))}`)
  run.totals.passed++
  run.write(`ok    ${name}  ${seconds(performance.now() - started)}`)
}

async function reportCoverage({ options, coverage }: Run): Promise<void> {
  for (const name of await readdir(coverage.rules))
    await rename(join(coverage.rules, name), join(coverage.rest, name))
  const { writeCoverageReport } = await import('./rule-coverage.ts')
  await writeCoverageReport(options.root, coverage.rest)
}

function fail(run: Run, what: string): void {
  run.totals.failed++
  run.write(`FAIL  ${what}`)
}
