import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { Report } from 'c8'
import { listFiles } from './find-tests.ts'

/** What must be covered by its own tests: the rule book and what clients share. */
const COVERED = ['server/**/*.rule.ts', 'shared/*.ts', 'shared/client/*.ts']
const LEAST_BRANCHES = 0.95

export interface CoverageVerdict {
  files: number
  /** One line for each file that falls short, with the lines to look at; empty when all is well. */
  shortfalls: string[]
}

/** The part of an Istanbul record that is read here: hits per statement (V8: a line each) and per branch. */
interface FileCoverage {
  statementMap: Record<string, Span>
  s: Record<string, number>
  branchMap: Record<string, { loc: Span }>
  b: Record<string, number[]>
}

interface Span {
  start: { line: number }
}

/**
 * Each rule has a test file of its own name, and each rule and shared file has every line and at least 95 % of its
 * branches covered by such tests. `raw` holds what Node wrote (NODE_V8_COVERAGE). The working directory is the root.
 */
export async function checkRuleCoverage(root: string, raw: string): Promise<CoverageVerdict> {
  const all = await listFiles(root, ['server', 'shared'])
  const files = all.filter(
    (path) =>
      /^server\/.*\.rule\.ts$|^shared\/(?:client\/)?[^/]+\.ts$/.test(path) && !path.endsWith('.test.ts'),
  )
  const covered = files.length > 0 ? await readCoverage(root, raw) : new Map<string, FileCoverage>()
  const typesOnly = filesOfTypesOnly(
    root,
    files.filter((path) => !covered.has(path)),
  )
  const shortfalls: string[] = []
  for (const path of files) {
    const own = path.replace(/\.ts$/, '.test.ts')
    const text = await readFile(join(root, path), 'utf8')
    const coverage = covered.get(path)
    if (/\b(?:c8|v8) ignore\b/.test(text)) shortfalls.push(`${path} hides lines from the coverage`)
    if (path.endsWith('.rule.ts') && !all.includes(own))
      shortfalls.push(`${path} has no test of its own: ${own}`)
    if (coverage) shortfalls.push(...shortfallsOf(path, coverage))
    else if (!typesOnly.has(path)) shortfalls.push(`${path} is run by no rule test or shared test`)
  }
  return { files: files.length, shortfalls }
}

/** Lines and branches of one file that no test reached. */
function shortfallsOf(path: string, { statementMap, s, branchMap, b }: FileCoverage): string[] {
  const lines = Object.keys(s).filter((key) => s[key] === 0)
  const branches = Object.keys(b).flatMap((key) => (b[key] ?? []).map((hits) => ({ key, hits })))
  const missed = branches.filter(({ hits }) => hits === 0)
  const shortfalls: string[] = []
  if (lines.length > 0) {
    shortfalls.push(
      `${path} has lines that no own test runs: ${ranges(lines.map((key) => lineOf(statementMap[key])))}`,
    )
  }
  if (missed.length > branches.length * (1 - LEAST_BRANCHES)) {
    const where = ranges(missed.map(({ key }) => lineOf(branchMap[key]?.loc)))
    shortfalls.push(
      `${path} has ${missed.length} of ${branches.length} branches that no own test takes, at ${where}`,
    )
  }
  return shortfalls
}

async function readCoverage(root: string, raw: string): Promise<Map<string, FileCoverage>> {
  const directory = await mkdtemp(join(tmpdir(), 'affiliate-rule-coverage-'))
  try {
    await new Report({
      include: COVERED,
      exclude: ['**/*.test.ts'],
      extension: ['.ts'],
      reporter: ['json'],
      reportsDirectory: directory,
      tempDirectory: raw,
      resolve: root,
      excludeNodeModules: true,
    }).run()
    const report = JSON.parse(await readFile(join(directory, 'coverage-final.json'), 'utf8'))
    const records = Object.entries(report as Record<string, FileCoverage>)
    return new Map(records.map(([path, coverage]) => [relative(root, path).replaceAll('\\', '/'), coverage]))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Writes the report of everything that the run's processes ran to `coverage/` and a table to the console. */
export async function writeCoverageReport(root: string, raw: string): Promise<void> {
  await new Report({
    include: ['server/**', 'cli/**', 'shared/**'],
    exclude: ['**/*.test.ts', 'server/migrations/**'],
    extension: ['.ts'],
    reporter: ['text', 'html'],
    reportsDirectory: join(root, 'coverage'),
    tempDirectory: raw,
    resolve: root,
    all: true,
    src: [root],
    excludeNodeModules: true,
  }).run()
}

/** Files of types are never loaded, because nothing is left of them when their types are stripped. */
function filesOfTypesOnly(root: string, paths: string[]): Set<string> {
  if (paths.length === 0) return new Set()
  const script = `
    import { readFileSync } from 'node:fs'
    import { stripTypeScriptTypes } from 'node:module'
    const left = (path) => stripTypeScriptTypes(readFileSync(path, 'utf8')).replace(/\\/\\*[^]*?\\*\\/|\\/\\/.*|export\\s*{\\s*}|[\\s;]/g, '')
    console.log(JSON.stringify(process.argv.slice(1).filter((path) => left(path) === '')))`
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]
  const { stdout, stderr, status } = spawnSync(process.execPath, [...flags, ...paths], {
    cwd: root,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`cannot read ${paths.join(', ')}: ${stderr}`)
  return new Set(JSON.parse(stdout) as string[])
}

function lineOf(span: Span | undefined): number {
  return span?.start.line ?? 0
}

/** `[1, 2, 3, 7]` → `1-3, 7`. */
function ranges(lines: number[]): string {
  const sorted = [...new Set(lines)].sort((a, b) => a - b)
  const runs: [number, number][] = []
  for (const line of sorted) {
    const last = runs.at(-1)
    if (last && last[1] === line - 1) last[1] = line
    else runs.push([line, line])
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ')
}
