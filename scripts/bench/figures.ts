import type { Calm } from './calm-rounds.ts'
import type { BenchDialect } from './options.ts'

/** What one bench found: our figures and the bare peer's, round by round, in turn. */
export interface Comparison {
  path: string
  database: BenchDialect
  /** What the peer is, in a few words. */
  against: string
  unit: 'requests/s' | 'orders/s' | 'ms'
  peer: readonly number[]
  ours: readonly number[]
  /** A ratio that must be reached (`least`) or not be passed (`most`), and the one to aim at. */
  must: { kind: 'least' | 'most'; ratio: number; aim: number; p99?: P99 } | null
  /** Of ours, and of the peer, whose every ms is the machine's and the load generator's. */
  latency?: { ours: Latency; peer: Latency }
  /** Processor time of the server, µs a request, of ours and of the peer. */
  cpu?: { ours: number; peer: number }
  /** How calm the machine was meanwhile, where rounds are repeated for that. */
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

/** What the slowest percent of answers under load must stay below, ms, and the time to aim at. */
interface P99 {
  below: number
  aim: number
}

/** One figure with its limit, where there is no peer. */
export interface Measurement {
  what: string
  database: BenchDialect | null
  unit: 'ms' | 'MB' | 'µs' | '×'
  values: readonly number[]
  most: number | null
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

export type Verdict = 'met' | 'aim met' | 'missed' | '-'

/** Both the ratio and, where one is asked for, the p99 have to be as they must. */
export function verdictOf(comparison: Comparison): Verdict {
  const { must, latency } = comparison
  if (!must) return '-'
  const ratio = ratioOf(comparison).median
  const reaches = (limit: number, p99: number) =>
    (must.kind === 'least' ? ratio >= limit : ratio <= limit) && (latency?.ours.p99 ?? 0) < p99
  if (reaches(must.aim, must.p99?.aim ?? Infinity)) return 'aim met'
  return reaches(must.ratio, must.p99?.below ?? Infinity) ? 'met' : 'missed'
}

export function verdictOfMeasurement({ values, most }: Measurement): Verdict {
  if (most === null) return '-'
  return median(values) <= most ? 'met' : 'missed'
}
