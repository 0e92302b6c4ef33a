import { createInterface, type Interface } from 'node:readline/promises'
import { printLines, terminalLine } from './printable-text.ts'

/** Asks questions at a terminal, on stderr: stdout is for the output of the command. */
export class Terminal {
  readonly #lines: Interface
  readonly #gone = new AbortController()
  #interrupted = false

  constructor() {
    this.#lines = createInterface({ input: process.stdin, output: process.stderr })
    this.#lines.once('SIGINT', () => {
      this.#interrupted = true
      this.#lines.close()
    })
    // Ctrl-C and Ctrl-D: a question would otherwise never be answered.
    this.#lines.once('close', () => this.#gone.abort())
  }

  /** Whether Ctrl-C ended it. */
  get interrupted(): boolean {
    return this.#interrupted
  }

  /** The answer, trimmed; `null` after Ctrl-C or Ctrl-D. */
  async ask(question: string): Promise<string | null> {
    const { signal } = this.#gone
    if (signal.aborted) return null
    try {
      return (await this.#lines.question(terminalLine(question), { signal })).trim()
    } catch (error) {
      if (!signal.aborted) throw error
      printLines([''], process.stderr)
      return null
    }
  }

  async agrees(question: string): Promise<boolean> {
    return /^y(es)?$/i.test((await this.ask(`${question} [y/N] `)) ?? '')
  }

  close(): void {
    this.#lines.close()
  }
}
