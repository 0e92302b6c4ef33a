import { stripVTControlCharacters } from 'node:util'

export interface Tally {
  total: number
  passed: number
  skipped: number
}

const TAIL = /^ {2}Total: +(\d+)\n {2}Passed: +(\d+)\n {2}Skipped: +(\d+)$/gm

/**
 * Reads the counts at the end of uvu's output; `null` when it never got there. A file whose suites start at
 * different moments prints several tails, which add up.
 */
export function readTally(output: string): Tally | null {
  const tails = [...stripVTControlCharacters(output).matchAll(TAIL)]
  if (tails.length === 0) return null
  const sum = (group: number) => tails.reduce((all, tail) => all + Number(tail[group]), 0)
  return { total: sum(1), passed: sum(2), skipped: sum(3) }
}

/** The reasons that a test printed by itself, as lines of the form `skipped: why`. */
export function readSkipReasons(output: string): string[] {
  return [...stripVTControlCharacters(output).matchAll(/^skipped: (.+)$/gm)].map((match) => match[1] ?? '')
}

/** What a test says of its own size, as lines of the form `size: 424 cells`: shown for passing files as well. */
export function readSizes(output: string): string[] {
  return [...stripVTControlCharacters(output).matchAll(/^size: (.+)$/gm)].map((match) => match[1] ?? '')
}

/** In no output of a test. */
const END = '\u001eend of file '

/** What a process that runs several files writes after each: wall-clock and processor time, ms. */
export function endOfFile(took: number, cpu: number): string {
  return `${END}${took} ${cpu}\n`
}

interface FileOutput {
  text: string
  took: number
  cpu: number
}

/** The output of each file that such a process has ended, and what it printed after them. */
export function splitOutput(output: string): { ended: FileOutput[]; rest: string } {
  const ended: FileOutput[] = []
  let from = 0
  for (const match of output.matchAll(new RegExp(`${END}(\\S+) (\\S+)\n`, 'g'))) {
    ended.push({ text: output.slice(from, match.index), took: Number(match[1]), cpu: Number(match[2]) })
    from = match.index + match[0].length
  }
  return { ended, rest: output.slice(from) }
}
