import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { LONG_FORMS, type LongForm } from './proof/long-forms.ts'
import { ProgressDisplay } from './proof/progress.ts'
import { type ProofRow, proofTable, withTable } from './proof/table.ts'
import { findTests } from './testing/find-tests.ts'
import { givenPostgres, startPostgres, type TestPostgres } from './testing/postgres.ts'
import { printFile } from './testing/report.ts'
import { type FileResult, runFile } from './testing/run-file.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** A long form may take hours; this only ends one that hangs. */
const LIMIT_MS = 12 * 3_600_000

const USAGE = `npm run proof -- [--only NAME]... [--scale F] [--seed N] [--sqlite-only] [--readme]

  Runs the long forms of the proofs on SQLite and PostgreSQL, one after the other, and prints one table at the end.
  --scale 0.1 does a tenth of the counts; --seed repeats a run; --readme puts the table into README.md.
  Proofs: ${LONG_FORMS.map(({ name }) => name).join(', ')}`

interface Options {
  proofs: LongForm[]
  scale: number
  seed: number
  sqliteOnly: boolean
  readme: boolean
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      scale: { type: 'string', default: '1' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      'sqlite-only': { type: 'boolean', default: false },
      readme: { type: 'boolean', default: false },
    },
  })
  const proofs = LONG_FORMS.filter(({ name }) => values.only.length === 0 || values.only.includes(name))
  const unknown = values.only.find((name) => !LONG_FORMS.some((proof) => proof.name === name))
  if (unknown !== undefined) throw new Error(`no proof is called ${unknown}`)
  const [scale, seed] = [Number(values.scale), Number(values.seed)]
  if (!(scale > 0)) throw new Error(`--scale takes a number above zero, not ${values.scale}`)
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed takes a whole number, not ${values.seed}`)
  return { proofs, scale, seed, sqliteOnly: values['sqlite-only'], readme: values.readme }
}

async function environmentOf(
  proof: LongForm,
  options: Options,
  postgres: TestPostgres | null,
): Promise<NodeJS.ProcessEnv> {
  const counts = Object.entries(proof.counts ?? {}).map(([name, count]) => [
    name,
    String(Math.max(1, Math.round(count * options.scale))),
  ])
  return {
    ...process.env,
    ...Object.fromEntries(counts),
    ...proof.settings,
    TEST_SEED: String(options.seed),
    ...(postgres ? { TEST_POSTGRES_URL: await postgres.url } : { TEST_SQLITE_ONLY: '1' }),
  }
}

async function prove(
  proof: LongForm,
  options: Options,
  postgres: TestPostgres | null,
  signal: AbortSignal,
): Promise<ProofRow> {
  const env = await environmentOf(proof, options, postgres)
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
      rows.push(await prove(proof, options, postgres, interruption.signal))
    }
  } finally {
    await postgres?.stop()
  }
  const databases = options.sqliteOnly ? 'SQLite' : 'SQLite and PostgreSQL'
  const table = proofTable(rows, {
    date: new Date().toISOString().slice(0, 10),
    commit: commitOf(),
    seed: options.seed,
    scale: options.scale,
    machine: `${databases}, Node ${process.versions.node}, ${availableParallelism()} cores`,
  })
  process.stdout.write(`\n${table}\n`)
  const holds = rows.length === options.proofs.length && rows.every(({ results }) => allPassed(results))
  if (options.readme && holds) {
    const path = `${ROOT}README.md`
    await writeFile(path, withTable(await readFile(path, 'utf8'), table))
  }
  return holds
}

function allPassed(results: FileResult[]): boolean {
  return results.length > 0 && results.every((result) => result.failed === 0 && result.passed > 0)
}

try {
  if (!(await main(readOptions()))) process.exitCode = 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  console.error(USAGE)
  process.exitCode = 2
}
