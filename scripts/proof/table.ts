import { seconds } from '../testing/report.ts'
import type { FileResult } from '../testing/run-file.ts'
import { readSizes } from '../testing/uvu-output.ts'
import type { Form, Proof } from './proofs.ts'

export interface ProofRow {
  proof: Proof
  results: FileResult[]
}

/** What is needed to repeat a run. */
export interface RunIdentity {
  /** ISO date. */
  date: string
  commit: string
  form: Form
  seed: number
  scale: number
  /** Databases, runtime, processor. */
  machine: string
}

/** Whether something passed and nothing failed. A file may be skipped with a reason, but not be empty. */
export function proofHolds(results: readonly FileResult[]): boolean {
  return (
    results.some(({ passed }) => passed > 0) &&
    results.every(({ passed, failed, skipped }) => failed === 0 && passed + skipped > 0)
  )
}

/** The run as a Markdown table, with the sizes that each proof reports. */
export function proofTable(rows: readonly ProofRow[], run: RunIdentity): string {
  const lines = rows.map(({ proof, results }) => {
    const passed = results.reduce((sum, result) => sum + result.passed, 0)
    const took = results.reduce((sum, result) => sum + result.took, 0)
    const sizes = results.flatMap((result) => readSizes(result.output))
    const verdict = proofHolds(results) ? 'holds' : '**FAILS**'
    return `| ${proof.name} | ${proof.promise} | ${sizes.map(escaped).join('<br>') || `${passed} tests`} | ${verdict} | ${seconds(took)} |`
  })
  return [
    '| proof | what must hold | counts of this run | verdict | took |',
    '|---|---|---|---|---|',
    ...lines,
    '',
    `Run on ${run.date} at commit \`${run.commit}\` in the ${run.form} form with seed ${run.seed}${run.scale === 1 ? '' : `, counts scaled by ${run.scale}`}; ${run.machine}.`,
  ].join('\n')
}

/** Leaves out long lists in braces, such as counts by status: they are in the run's own output. */
function escaped(text: string): string {
  return text.replace(/[,:]? ?\{[^}]{80,}\}/g, '').replaceAll('|', '\\|')
}

const START = '<!-- proof table: written by npm run proof -- --guide -->'
const END = '<!-- end of proof table -->'

/** The guide with the table between its two markers replaced. Throws if a marker is missing. */
export function withTable(guide: string, table: string): string {
  const start = guide.indexOf(START)
  const end = guide.indexOf(END)
  if (start < 0 || end < start) throw new Error('The guide has no markers for the proof table.')
  return `${guide.slice(0, start + START.length)}\n\n${table}\n\n${guide.slice(end)}`
}
