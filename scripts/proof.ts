import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openPlace, type ProofPlace } from './proof/place.ts'
import { ProgressDisplay } from './proof/progress.ts'
import { type Form, PROOFS, type Proof, sizeOf } from './proof/proofs.ts'
import { type ProofRow, proofHolds, proofTable, withTable } from './proof/table.ts'
import { findTests, groupTests, type TestFile } from './testing/find-tests.ts'
import { countsLine, printFile } from './testing/report.ts'
import { runGroup } from './testing/run-file.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const GUIDE = 'server/guides/proofs.md'

/** A long form may take hours; this ends one that hangs. */
const LIMIT_MS = 12 * 3_600_000

const USAGE = `npm run proof -- [NAME...] [--short [--after-tests]] [--scale F] [--seed N] [--sqlite-only] [--guide]

  Runs the long forms of the proofs on SQLite and PostgreSQL, one after the other, and prints a table and, in the last
  line, the number of tests. Without names, all proofs run; --only NAME is the same as NAME.
  --short runs the short forms, as many files at a time as there are cores; --after-tests leaves out what
  "npm test" does in the same form. --scale 0.1 a tenth of the counts; --seed repeats a run; --guide (or --readme) writes the
  table to ${GUIDE} if all proofs hold.
  Proofs: ${PROOFS.map(({ name }) => slugOf(name)).join(', ')}`

interface Options {
  proofs: Proof[]
  form: Form
  scale: number
  seed: number
  sqliteOnly: boolean
  afterTests: boolean
  guide: boolean
}

function slugOf(name: string): string {
  return name.replaceAll(' ', '-')
}

function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string', multiple: true, default: [] },
      short: { type: 'boolean', default: false },
      scale: { type: 'string', default: '1' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      'sqlite-only': { type: 'boolean', default: false },
      'after-tests': { type: 'boolean', default: false },
      guide: { type: 'boolean', default: false },
      readme: { type: 'boolean', default: false },
    },
  })
  const names = [...positionals, ...values.only].map(slugOf)
  const unknown = names.find((name) => !PROOFS.some((proof) => slugOf(proof.name) === name))
  if (unknown !== undefined) throw new Error(`Unknown proof "${unknown}".`)
  const proofs = PROOFS.filter(({ name }) => names.length === 0 || names.includes(slugOf(name)))
  const [scale, seed] = [Number(values.scale), Number(values.seed)]
  if (!(scale > 0)) throw new Error(`--scale must be a number above zero, not ${values.scale}.`)
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed must be a whole number, not ${values.seed}.`)
  if (values['after-tests'] && !values.short) throw new Error('--after-tests goes with --short.')
  const form = values.short ? 'short' : 'long'
  return {
    proofs,
    form,
    scale,
    seed,
    sqliteOnly: values['sqlite-only'],
    afterTests: values['after-tests'],
    guide: values.guide || values.readme,
  }
}

/** The files of each proof that this run is to run; without the proofs that have none. */
async function chosenFiles({ proofs, afterTests }: Options): Promise<{ proof: Proof; files: TestFile[] }[]> {
  const chosen = proofs.map(async (proof) => {
    const files = await findTests(ROOT, proof.files)
    if (files.length === 0) throw new Error(`${proof.name}: no test file matches ${proof.files.join(' ')}`)
    return { proof, files: files.filter((file) => !afterTests || file.proofOnly || file.sized) }
  })
  return (await Promise.all(chosen)).filter(({ files }) => files.length > 0)
}

/** Neighbors share a process in the short form, where a file that hangs ends as in `npm test`. */
function groupsOf(files: TestFile[], form: Form): TestFile[][] {
  return form === 'short' ? groupTests(files) : files.map((file) => [{ ...file, limit: LIMIT_MS }])
}

/** Runs the files in their order: those of the short forms beside each other, and those of proofs under load apart, two at a time. */
async function runProofs(options: Options, place: ProofPlace, signal: AbortSignal): Promise<ProofRow[]> {
  const display = new ProgressDisplay(process.stderr, () => performance.now())
  const chosen = await chosenFiles(options)
  const rows: ProofRow[] = chosen.map(({ proof }) => ({ proof, results: [] }))
  const all = chosen.flatMap(({ proof, files }, at) =>
    groupsOf(files, options.form).map((group) => ({ proof, group, at })),
  )
  const lane = async (queue: Iterable<(typeof all)[number]>) => {
    for (const { proof, group, at } of queue) {
      if (signal.aborted) return
      const size = sizeOf(proof, options.form, options.scale)
      const env: NodeJS.ProcessEnv = { ...place.env, TEST_SEED: String(options.seed), ...size }
      if (options.afterTests && proof.testedOnSqlite && !options.sqliteOnly) env.TEST_POSTGRES_ONLY = '1'
      const onOutput = (chunk: string) => display.take(proof.name, chunk)
      const results = await runGroup(group, { root: ROOT, env, signal, onOutput })
      display.clear()
      for (const result of results) printFile((line) => process.stdout.write(`${line}\n`), result, false)
      rows[at]?.results.push(...results)
    }
  }
  const beside = async (queue: typeof all, count: number) => {
    const files = queue.values()
    await Promise.all(Array.from({ length: count }, () => lane(files)))
  }
  const jobs = options.form === 'short' ? availableParallelism() : 1
  await beside(
    all.filter(({ proof }) => !proof.apart),
    jobs,
  )
  await beside(
    all.filter(({ proof }) => proof.apart),
    Math.min(jobs, 2),
  )
  return rows
}

function commitOf(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
  return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') ? ' with changes' : '')
}

async function main(options: Options): Promise<boolean> {
  const interruption = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interruption.abort())
  // What the long forms write may be more than the memory holds.
  const place = await openPlace(ROOT, { inMemory: options.form === 'short', sqliteOnly: options.sqliteOnly })
  const rows = await runProofs(options, place, interruption.signal).finally(place.close)
  const databases = options.sqliteOnly ? 'SQLite' : 'SQLite and PostgreSQL'
  const table = proofTable(rows, {
    date: new Date().toISOString().slice(0, 10),
    commit: commitOf(),
    form: options.form,
    seed: options.seed,
    scale: options.scale,
    machine: `${databases}, Node ${process.versions.node}, ${availableParallelism()} cores`,
  })
  process.stdout.write(`\n${table}\n`)
  const holds = !interruption.signal.aborted && rows.every(({ results }) => proofHolds(results))
  if (options.guide && holds) {
    const path = `${ROOT}${GUIDE}`
    await writeFile(path, withTable(await readFile(path, 'utf8'), table))
  }
  const results = rows.flatMap((row) => row.results)
  const sum = (key: 'passed' | 'failed' | 'skipped') => results.reduce((all, result) => all + result[key], 0)
  const failed = sum('failed') || (holds ? 0 : 1)
  process.stdout.write(`\n${countsLine({ passed: sum('passed'), failed, skipped: sum('skipped') })}\n`)
  return holds
}

try {
  if (!(await main(readOptions()))) process.exitCode = 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  console.error(USAGE)
  process.exitCode = 2
}
