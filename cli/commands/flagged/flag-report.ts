import type { FlagRow } from '../../../server/flags/flags.service.ts'
import { type Output, wireTime } from '../../terminal/output.ts'

const COLOUR = { high: 'red', medium: 'yellow', low: 'dim' } as const

export function flagTable(out: Output, flags: readonly FlagRow[]): string[] {
  return out.table(
    [
      { title: 'Severity' },
      { title: 'Kind' },
      { title: 'What', flexible: true },
      { title: 'About', flexible: true },
      { title: 'Since' },
      { title: 'Id' },
    ],
    flags.map((flag) => [
      flag.severity,
      flag.kind,
      flag.note === null ? flag.summary : `${flag.summary} Resolved: ${flag.note}`,
      `${flag.subject_type} ${flag.subject_id}`,
      out.shortTime(flag.created_at),
      flag.id,
    ]),
  )
}

export function wireFlag(flag: FlagRow) {
  return {
    id: flag.id,
    kind: flag.kind,
    severity: flag.severity,
    subject_type: flag.subject_type,
    subject_id: flag.subject_id,
    summary: flag.summary,
    evidence: JSON.parse(flag.evidence) as unknown,
    status: flag.status,
    note: flag.note,
    created_at: wireTime(flag.created_at),
    resolved_at: wireTime(flag.resolved_at),
  }
}

/** One flag with its evidence, for the person who decides on it. */
export function flagLines(out: Output, flag: FlagRow): string[] {
  const evidence = JSON.parse(flag.evidence) as Record<string, unknown>
  return [
    `${out.style(COLOUR[flag.severity], flag.severity)}  ${out.heading(flag.kind)}  since ${out.time(flag.created_at)}`,
    flag.summary,
    ...out
      .pairs([
        ['about', `${flag.subject_type} ${flag.subject_id}`],
        ...Object.entries(evidence).map(([name, value]) => [name, valueText(value)] as const),
      ])
      .map((line) => `  ${line}`),
  ]
}

function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
