import type { FileResult } from './run-file.ts'
import { readSizes } from './uvu-output.ts'

export interface Totals {
  passed: number
  failed: number
  skipped: number
}

export type Write = (line: string) => void

/** One line a file; what it says of its size; the reasons of skipped tests; and the output of a file that failed, in full. */
export function printFile(write: Write, result: FileResult, verbose: boolean): void {
  const { path, passed, failed, skipped, problem, output, took } = result
  write(`${failed ? 'FAIL' : 'ok  '}  ${path}  ${countsLine({ passed, failed, skipped })}  ${seconds(took)}`)
  for (const reason of skippedLines(result)) write(`      skipped: ${reason}`)
  if (!failed && !verbose) for (const size of readSizes(output)) write(`      ${size}`)
  if (problem) write(`      ${path} ${problem}`)
  if (failed || verbose) write(indent(output.trimEnd() || '(no output)'))
}

/** The counts as the run's last line has them: `12 passed, 1 failed` and `, 2 skipped` when there are any. */
export function countsLine({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`
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
