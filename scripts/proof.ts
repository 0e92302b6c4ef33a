import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ProgressDisplay } from './proof/progress.ts'
import { type Form, PROOFS, type Proof, sizeOf } from './proof/proofs.ts'
import { type ProofRow, proofHolds, proofTable, withTable } from './proof/table.ts'
import { findTests } from './testing/find-tests.ts'
import { givenPostgres, startPostgres, type TestPostgres } from './testing/postgres.ts'
import { countsLine, printFile } from './testing/report.ts'
import { type FileResult, runFile } from './testing/run-file.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const GUIDE = 'server/guides/proofs.md'

/** A long form may take hours; this ends one that hangs. */
const LIMIT_MS = 12 * 3_600_000

const USAGE = `npm run proof -- [NAME...] [--short] [--scale F] [--seed N] [--sqlite-only] [--guide]

  Runs the long forms of the proofs on SQLite and PostgreSQL, one after the other, and prints a table and, in the last
  line, the number of tests. Without names, all proofs run; --only NAME is the same as NAME.
  --short runs the short forms; --scale 0.1 a tenth of the counts; --seed repeats a run; --guide (or --readme) writes the
  table to ${GUIDE} if all proofs hold.
  Proofs: ${PROOFS.map(({ name }) => slugOf(name)).join(', ')}`

interface Options {
  proofs: Proof[]
  form: Form
  scale: number
  seed: number
  sqliteOnly: boolean
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
  const form = values.short ? 'short' : 'long'
  return {
    proofs,
    form,
    scale,
    seed,
    sqliteOnly: values['sqlite-only'],
    guide: values.guide || values.readme,
  }
}

async function runProof(
  proof: Proof,
  options: Options,
  postgres: TestPostgres | null,
  signal: AbortSignal,
): Promise<ProofRow> {
  const env = {
    ...process.env,
    ...sizeOf(proof, options.form, options.scale),
    TEST_SEED: String(options.seed),
    DRAIN_SECONDS: '0',
    ...(postgres ? { TEST_POSTGRES_URL: await postgres.url } : { TEST_SQLITE_ONLY: '1' }),
  }
  const files = await findTests(ROOT, proof.files)
  if (files.length === 0) throw new Error(`${proof.name}: no test file matches ${proof.files.join(' ')}`)
  const display = new ProgressDisplay(process.stderr, () => performance.now())
  const results: FileResult[] = []
  for (const file of files) {
    if (signal.aborted) break
    const onOutput = (chunk: string) => display.take(proof.name, chunk)
    const result = await runFile({ ...file, limit: LIMIT_MS }, { root: ROOT, env, signal, onOutput })
    display.clear()
    printFile((line) => process.stdout.write(`${line}\n`), result, false)
    results.push(result)
  }
  return { proof, results }
}

function commitOf(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
  return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') ? ' with changes' : '')
}

async function main(options: Options): Promise<boolean> {
  const interruption = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interruption.abort())
  const given = process.env.TEST_POSTGRES_URL
  const postgres = options.sqliteOnly ? null : given ? givenPostgres(given) : startPostgres()
  const rows: ProofRow[] = []
  try {
    for (const proof of options.proofs) {
      if (interruption.signal.aborted) break
      rows.push(await runProof(proof, options, postgres, interruption.signal))
    }
  } finally {
    await postgres?.stop()
  }
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
  const holds = rows.length === options.proofs.length && rows.every(({ results }) => proofHolds(results))
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
