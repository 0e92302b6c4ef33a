import { parseArgs } from 'node:util'

export const DIALECTS = ['sqlite', 'postgresql'] as const
export type BenchDialect = (typeof DIALECTS)[number]

export interface BenchOptions {
  /** The benches to run, by name. */
  names: readonly string[]
  databases: readonly BenchDialect[]
  rounds: number
  /** The length of one round under load. Rounds write to memory, so long ones on a virtual machine measure its host. */
  seconds: number
  /** A file for the figures, or `null`. */
  json: string | null
  /** Whether the table is written to the benchmark guide. */
  guide: boolean
}

export const USAGE = `node scripts/bench/bench.ts [NAME…] [--database sqlite|postgresql] [--rounds N] [--seconds N] [--json FILE] [--guide]`

/** Throws with the reason for invalid arguments. */
export function parseOptions(args: readonly string[], known: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      database: { type: 'string', multiple: true },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      json: { type: 'string' },
      guide: { type: 'boolean', default: false },
    },
  })
  const unknown = positionals.filter((name) => !known.includes(name))
  if (unknown.length > 0)
    throw new Error(`Unknown bench ${unknown.join(', ')}. Choose from ${known.join(', ')}.`)
  return {
    names: positionals,
    databases: databasesOf(values.database ?? []),
    rounds: wholeOf('--rounds', values.rounds, 50),
    seconds: wholeOf('--seconds', values.seconds, 30),
    json: values.json ?? null,
    guide: values.guide,
  }
}

function databasesOf(given: readonly string[]): readonly BenchDialect[] {
  if (given.length === 0) return DIALECTS
  return given.map((name) => {
    const dialect = DIALECTS.find((one) => one === name)
    if (!dialect) throw new Error(`--database must be ${DIALECTS.join(' or ')}`)
    return dialect
  })
}

function wholeOf(name: string, text: string, most: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= most) return value
  throw new Error(`${name} must be a whole number from 1 to ${most}`)
}
