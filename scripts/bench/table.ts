import type { Calm } from './calm-rounds.ts'
import {
  type Comparison,
  type Findings,
  type Latency,
  type Measurement,
  median,
  ratioOf,
  verdictOf,
  verdictOfMeasurement,
} from './figures.ts'
import type { Machine } from './machine.ts'

const HEADS = ['path', 'database', 'ours', 'peer', 'measured', 'spread', 'bound', 'details', 'verdict']

/** The machine, one line for each comparison and measurement, and the notes, as plain text. */
export function textOf(machine: Machine, findings: Findings): string {
  return [
    ...Object.entries(machine).map(([name, value]) => `${name.padEnd(12)} ${value}`),
    '',
    ...aligned([HEADS, ...rowsOf(findings)]),
    '',
    ...notesOf(findings),
  ].join('\n')
}

/** The same as Markdown, for the guide. */
export function markdownOf(machine: Machine, findings: Findings): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    ...Object.entries(machine).map(([name, value]) => `- ${name}: ${value}`),
    '',
    line(HEADS),
    line(HEADS.map(() => '---')),
    ...rowsOf(findings).map(line),
    '',
    ...notesOf(findings).map((note) => `- ${note}`),
  ].join('\n')
}

function rowsOf({ comparisons, measurements }: Findings): string[][] {
  return [...comparisons.map(comparisonRow), ...measurements.map(measurementRow)]
}

function comparisonRow(one: Comparison): string[] {
  const ratio = ratioOf(one)
  const details = [
    one.latency ? `p50/p99 ${latencyText(one.latency.ours)} ms, peer ${latencyText(one.latency.peer)}` : '',
    one.cpu ? `CPU ${shown(one.cpu.ours)} µs, peer ${shown(one.cpu.peer)}` : '',
    one.calm ? calmText(one.calm) : '',
  ]
  return [
    one.path,
    one.database,
    `${shown(median(one.ours))} ${one.unit}`,
    `${shown(median(one.peer))} (${one.against})`,
    `ratio ${shown(ratio.median)}`,
    `${shown(ratio.least)}–${shown(ratio.most)}`,
    one.must ? `${one.must.kind === 'most' ? '≤' : '≥'} ${one.must.ratio}` : '-',
    details.filter(Boolean).join('; ') || '-',
    verdictOf(one),
  ]
}

function measurementRow(one: Measurement): string[] {
  return [
    one.what,
    one.database ?? '-',
    '-',
    '-',
    `${shown(median(one.values))} ${one.unit}`,
    `${shown(Math.min(...one.values))}–${shown(Math.max(...one.values))}`,
    one.most === null ? '-' : `≤ ${one.most} ${one.unit}`,
    one.detail ?? '-',
    verdictOfMeasurement(one),
  ]
}

function notesOf({ comparisons }: Findings): string[] {
  return [...new Set(comparisons.flatMap(({ path, notes }) => notes.map((note) => `${path}: ${note}`)))]
}

function latencyText({ p50, p99 }: Latency): string {
  return `${shown(p50)}/${shown(p99)}`
}

/** The share of processor time that the host took in the rounds that count, if any, and how many rounds were repeated. */
function calmText({ stolen, repeated }: Calm): string {
  const most = Math.max(...stolen)
  const texts = [
    most >= 0.001 ? `host took ≤ ${(100 * most).toFixed(1)} %` : '',
    repeated > 0 ? `${repeated} rounds repeated` : '',
  ]
  return texts.filter(Boolean).join(', ')
}

function aligned(rows: readonly (readonly string[])[]): string[] {
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
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2)
}
