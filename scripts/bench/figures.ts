import type { Calm } from './calm-rounds.ts'
import type { BenchDialect } from './options.ts'

/** Our figures and the bare peer's, round by round. */
export interface Comparison {
  path: string
  database: BenchDialect
  /** What the peer is, in a few words. */
  against: string
  unit: 'requests/s' | 'orders/s' | 'ms'
  peer: readonly number[]
  ours: readonly number[]
  /** The ratio that must be reached (`least`) or not be exceeded (`most`). */
  must: { kind: 'least' | 'most'; ratio: number } | null
  latency?: { ours: Latency; peer: Latency }
  /** Processor time of the server, µs a request. */
  cpu?: { ours: number; peer: number }
  /** How calm the machine was, if rounds are repeated for that. */
  calm?: Calm
  /** What else is needed to read the line. */
  notes: readonly string[]
}

/** ms: medians over the rounds, and the longest of all. */
export interface Latency {
  p50: number
  p99: number
  most: number
}

/** One figure with its limit, where there is no peer. */
export interface Measurement {
  what: string
  database: BenchDialect | null
  unit: 'ms' | 'MB' | 'µs' | '×'
  values: readonly number[]
  most: number | null
  /** More about the figure, for its row of the table. */
  detail?: string
}

/** Times of one bench's database, ms, with no limit of their own. */
export function milliseconds(
  { dialect }: { dialect: BenchDialect },
  what: string,
  values: readonly number[],
): Measurement {
  return { what, database: dialect, unit: 'ms', values, most: null }
}

export interface Findings {
  comparisons: readonly Comparison[]
  measurements: readonly Measurement[]
}

export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}

export interface Ratio {
  median: number
  least: number
  most: number
}

/** Ours over the peer's, round by round: what slows the machine down for a while slows both. */
export function ratioOf({ ours, peer }: Pick<Comparison, 'ours' | 'peer'>): Ratio {
  const ratios = ours.map((value, round) => value / (peer[round] ?? Number.NaN))
  return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) }
}

export type Verdict = 'met' | 'missed' | '-'

export function verdictOf(comparison: Comparison): Verdict {
  const { must } = comparison
  if (!must) return '-'
  const ratio = ratioOf(comparison).median
  return (must.kind === 'least' ? ratio >= must.ratio : ratio <= must.ratio) ? 'met' : 'missed'
}

export function verdictOfMeasurement({ values, most }: Measurement): Verdict {
  if (most === null) return '-'
  return median(values) <= most ? 'met' : 'missed'
}
