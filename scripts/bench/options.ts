import { parseArgs } from 'node:util'
import { wrkVersion } from './wrk.ts'

export const DIALECTS = ['sqlite', 'postgresql'] as const
export type BenchDialect = (typeof DIALECTS)[number]

/** Who asks the servers under load: the one that npm brings, or one that asks for less of the processor and has to be installed. */
export const GENERATORS = ['autocannon', 'wrk'] as const
export type GeneratorName = (typeof GENERATORS)[number]

export interface BenchOptions {
  /** The benches to run, by name. */
  names: readonly string[]
  databases: readonly BenchDialect[]
  rounds: number
  /**
   * Of one round under load: so long that its first answers, of 64 new connections, are no percent of it, and no longer: what all rounds
   * write stays in memory, and past some two gigabytes the host of a virtual machine may take 20 µs for each page of it.
   */
  seconds: number
  generator: GeneratorName
  /** A file for the figures, or `null`. */
  json: string | null
}

export const USAGE = `node scripts/bench/bench.ts [NAME…] [--database sqlite|postgresql] [--rounds N] [--seconds N] [--generator autocannon|wrk] [--json FILE]`

/** Throws with the reason when the arguments make no sense. */
export function parseOptions(args: readonly string[], known: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      database: { type: 'string', multiple: true },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      generator: { type: 'string', default: 'autocannon' },
      json: { type: 'string' },
    },
  })
  const strangers = positionals.filter((name) => !known.includes(name))
  if (strangers.length > 0) throw new Error(`no bench is called ${strangers.join(', ')}: ${known.join(', ')}`)
  return {
    names: positionals,
    databases: databasesOf(values.database ?? []),
    rounds: wholeOf('--rounds', values.rounds, 50),
    seconds: wholeOf('--seconds', values.seconds, 30),
    generator: generatorOf(values.generator),
    json: values.json ?? null,
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

function generatorOf(given: string): GeneratorName {
  const generator = GENERATORS.find((one) => one === given)
  if (!generator) throw new Error(`--generator must be ${GENERATORS.join(' or ')}`)
  if (generator === 'wrk' && wrkVersion() === null) throw new Error('wrk is not installed here')
  return generator
}

function wholeOf(name: string, text: string, most: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1 && value <= most) return value
  throw new Error(`${name} must be a whole number from 1 to ${most}`)
}
