import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'

/** Many a test waits for processes that it has started, so one more than there are cores keeps them all at work. */
const DEFAULT_JOBS = availableParallelism() + 1

export interface RunOptions {
  /** A file runs when its path contains one of them; none means all files and the coverage check. */
  filters: string[]
  jobs: number
  /** Leave PostgreSQL out on purpose, e.g. where its binary does not exist. */
  sqliteOnly: boolean
  /** Also write a coverage report of everything to `coverage/`. */
  coverage: boolean
  /** Print the output of passing files too. */
  verbose: boolean
  root: string
}

export const USAGE = `node scripts/test.ts [filters...] [--jobs N] [--sqlite-only] [--coverage] [--verbose] [--root DIR]

  Runs every *.test.ts under server, cli, shared, scripts and fixtures whose path contains one of the filters,
  up to 64 in one process. The first lines of a test file may say "// long" (it then starts early), "// database: none"
  (it then does not wait for PostgreSQL), "// mostly waits" (it then runs beside the others), "// own process" (it changes
  something that its neighbors would notice, e.g. process.env) and "// time limit: 10 s" (default 1200 s).
  TEST_POSTGRES_URL, when set, is used instead of a PostgreSQL that the run starts by itself.`

/** Reads the command line. Throws a plain error with a one-line message on anything unknown. */
export function parseOptions(args: string[], root: string): RunOptions {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      jobs: { type: 'string', short: 'j', default: String(DEFAULT_JOBS) },
      'sqlite-only': { type: 'boolean', default: false },
      coverage: { type: 'boolean', default: false },
      verbose: { type: 'boolean', short: 'v', default: false },
      root: { type: 'string', default: root },
    },
  })
  const jobs = Number(values.jobs)
  if (!Number.isInteger(jobs) || jobs < 1)
    throw new Error(`--jobs takes a whole number from 1, not ${values.jobs}`)
  return {
    filters: positionals,
    jobs,
    sqliteOnly: values['sqlite-only'],
    coverage: values.coverage,
    verbose: values.verbose,
    root: values.root,
  }
}
