import type { Calm } from './calm-rounds.ts'
import { type Findings, type Latency, median, ratioOf, verdictOf, verdictOfMeasurement } from './figures.ts'
import type { Machine } from './machine.ts'

/** Everything as plain text: the machine, then one line a comparison or measurement, then what is to be known. */
export function textOf(machine: Machine, findings: Findings): string {
  const notes = [
    ...new Set(findings.comparisons.flatMap(({ path, notes }) => notes.map((note) => `${path}: ${note}`))),
  ]
  return [
    ...Object.entries(machine).map(([name, value]) => `${name.padEnd(12)} ${value}`),
    '',
    ...(findings.comparisons.length > 0 ? [...comparisonLines(findings), ''] : []),
    ...(findings.measurements.length > 0 ? [...measurementLines(findings), ''] : []),
    ...notes,
  ].join('\n')
}

function comparisonLines({ comparisons }: Findings): string[] {
  const heads = [
    'path',
    'database',
    'ours',
    'peer',
    'ratio',
    'spread',
    'must',
    'aim',
    'p50/p99 ms',
    'peer’s',
    'CPU µs',
    'host took',
    'verdict',
  ]
  const rows = comparisons.map((one) => {
    const ratio = ratioOf(one)
    const sign = one.must?.kind === 'most' ? '≤' : '≥'
    return [
      one.path,
      one.database,
      `${shown(median(one.ours))} ${one.unit}`,
      `${shown(median(one.peer))} (${one.against})`,
      shownRatio(ratio.median),
      `${shownRatio(ratio.least)}–${shownRatio(ratio.most)}`,
      one.must ? limits(`${sign}${one.must.ratio}`, one.must.p99?.below) : '-',
      one.must ? limits(`${sign}${one.must.aim}`, one.must.p99?.aim) : '-',
      latencyText(one.latency?.ours),
      latencyText(one.latency?.peer),
      one.cpu ? `${shown(one.cpu.ours)}/${shown(one.cpu.peer)}` : '-',
      calmText(one.calm),
      verdictOf(one),
    ]
  })
  return lined([heads, ...rows])
}

function measurementLines({ measurements }: Findings): string[] {
  const heads = ['what', 'database', 'median', 'spread', 'at most', 'verdict']
  const rows = measurements.map((one) => [
    one.what,
    one.database ?? '-',
    `${shown(median(one.values))} ${one.unit}`,
    `${shown(Math.min(...one.values))}–${shown(Math.max(...one.values))}`,
    one.most === null ? '-' : `${one.most}`,
    verdictOfMeasurement(one),
  ])
  return lined([heads, ...rows])
}

function latencyText(latency: Latency | undefined): string {
  return latency ? `${shown(latency.p50)}/${shown(latency.p99)}` : '-'
}

/** The most that the host took of the processors in a round that counts, and how many rounds do not count. */
function calmText(calm: Calm | undefined): string {
  if (!calm) return '-'
  const most = `≤${(100 * Math.max(...calm.stolen)).toFixed(1)} %`
  return calm.repeated > 0 ? `${most}, ${calm.repeated} repeated` : most
}

function limits(ratio: string, p99: number | undefined): string {
  return p99 === undefined ? ratio : `${ratio}, p99 <${p99}`
}

function lined(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  )
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

function shown(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

function shownRatio(value: number): string {
  return value >= 0.095 ? value.toFixed(2) : value.toFixed(3)
}
