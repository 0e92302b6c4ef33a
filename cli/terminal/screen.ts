import { terminalLine } from './printable-text.ts'

const CONTROL = '\u001b['
/**
 * The terminal's second screen, without a cursor: what stood on the first one comes back, and no old view is left above it. A long line
 * is cut at the edge: one that went on below would push the top away.
 */
const ENTER = `${CONTROL}?1049h${CONTROL}?25l${CONTROL}?7l`
const LEAVE = `${CONTROL}?7h${CONTROL}?25h${CONTROL}?1049l`
const HOME = `${CONTROL}H`
const CLEAR_TO_LINE_END = `${CONTROL}K`
const CLEAR_BELOW = `${CONTROL}J`

/** A view that is shown again and again in one place. */
export class Screen {
  /** Whether stdout is a terminal that can be written all over. */
  static isThere(environment: NodeJS.ProcessEnv): boolean {
    return Boolean(process.stdout.isTTY) && environment.TERM !== 'dumb'
  }

  constructor() {
    process.stdout.write(ENTER)
  }

  /** As many of the lines as there is room for. Each is written over the old one, so that nothing flickers. */
  show(lines: readonly string[]): void {
    const seen = lines.slice(0, Math.max(1, process.stdout.rows || lines.length))
    const text = seen.map((line) => `${CLEAR_TO_LINE_END}${terminalLine(line)}`).join('\n')
    process.stdout.write(`${HOME}${text}${CLEAR_BELOW}`)
  }

  leave(): void {
    process.stdout.write(LEAVE)
  }
}
