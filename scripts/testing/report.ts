import type { FileResult } from './run-file.ts'
import { readSizes } from './uvu-output.ts'

export interface Totals {
  passed: number
  failed: number
  skipped: number
}

export type Write = (line: string) => void

/** One line per file, its size lines, the reasons of skipped tests, and the full output of a file that failed. */
export function printFile(write: Write, result: FileResult, verbose: boolean): void {
  const { path, passed, failed, skipped, problem, output } = result
  write(`${failed ? 'FAIL' : 'ok  '}  ${path}  ${countsLine({ passed, failed, skipped })}  ${times(result)}`)
  for (const reason of skippedLines(result)) write(`      skipped: ${reason}`)
  if (!failed && !verbose) for (const size of readSizes(output)) write(`      ${size}`)
  if (problem) write(`      ${path} ${problem}`)
  if (failed || verbose) write(indent(output.trimEnd() || '(no output)'))
}

/** The counts as in the last line of a run: `12 passed, 1 failed`, with `, 2 skipped` if any. */
export function countsLine({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`
}

const SHOWN_SLOW_FILES = 10

/** The total time and the slowest files of a run. */
export function printTimes(write: Write, results: readonly FileResult[], took: number): void {
  const slowest = results.toSorted((a, b) => b.took - a.took).slice(0, SHOWN_SLOW_FILES)
  write(`The ${slowest.length} slowest files:`)
  for (const result of slowest) write(`      ${times(result)}  ${result.path}`)
  const cpu = results.reduce((sum, result) => sum + (result.cpu ?? 0), 0)
  write(`Total: ${results.length} files in ${times({ took, cpu })}`)
}

/** `1.25 s, CPU 0.98 s`. */
function times({ took, cpu }: Pick<FileResult, 'took' | 'cpu'>): string {
  return cpu === null ? seconds(took) : `${seconds(took)}, CPU ${seconds(cpu)}`
}

/** Milliseconds as `1.25 s`. */
export function seconds(took: number): string {
  return `${(took / 1000).toFixed(2)} s`
}

export function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '      ')
}

function skippedLines({ skipped, skipReasons }: FileResult): string[] {
  const unexplained = skipped - skipReasons.length
  return unexplained > 0 ? [...skipReasons, `${unexplained} without a reason`] : skipReasons
}
