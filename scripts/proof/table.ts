import { seconds } from '../testing/report.ts'
import type { FileResult } from '../testing/run-file.ts'
import { readSizes } from '../testing/uvu-output.ts'
import type { LongForm } from './long-forms.ts'

export interface ProofRow {
  proof: LongForm
  results: FileResult[]
}

/** What identifies a run: anyone can repeat it with these. */
export interface RunIdentity {
  /** ISO date. */
  date: string
  commit: string
  seed: number
  scale: number
  /** Databases, runtime, processor. */
  machine: string
}

/** The whole run as one Markdown table, with what each proof says of its own size. */
export function proofTable(rows: readonly ProofRow[], run: RunIdentity): string {
  const lines = rows.map(({ proof, results }) => {
    const failed = results.reduce((sum, result) => sum + result.failed, 0)
    const passed = results.reduce((sum, result) => sum + result.passed, 0)
    const took = results.reduce((sum, result) => sum + result.took, 0)
    const sizes = results.flatMap((result) => readSizes(result.output))
    const verdict = failed === 0 && passed > 0 ? 'holds' : '**FAILS**'
    return `| ${proof.name} | ${proof.promise} | ${sizes.map(escaped).join('<br>') || `${passed} tests`} | ${verdict} | ${seconds(took)} |`
  })
  return [
    '| proof | what must hold | counts of this run | verdict | took |',
    '|---|---|---|---|---|',
    ...lines,
    '',
    `Run on ${run.date} at commit \`${run.commit}\` with seed ${run.seed}${run.scale === 1 ? '' : `, counts scaled by ${run.scale}`}; ${run.machine}.`,
  ].join('\n')
}

/** Long lists in braces, such as how often each status came, stay in the run's own output. */
function escaped(text: string): string {
  return text.replace(/[,:]? ?\{[^}]{80,}\}/g, '').replaceAll('|', '\\|')
}

const START = '<!-- proof table: written by npm run proof -- --readme -->'
const END = '<!-- end of proof table -->'

/** The README with the table between its two marks exchanged. Throws where a mark is missing. */
export function withTable(readme: string, table: string): string {
  const start = readme.indexOf(START)
  const end = readme.indexOf(END)
  if (start < 0 || end < start) throw new Error('README.md has lost the marks around its proof table')
  return `${readme.slice(0, start + START.length)}\n\n${table}\n\n${readme.slice(end)}`
}
