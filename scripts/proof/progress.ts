/** Shows the last `progress: …` line of a running proof: in place on a terminal, every half minute elsewhere. */
export class ProgressDisplay {
  #rest = ''
  #lastShown = 0
  readonly #stream: NodeJS.WriteStream
  readonly #now: () => number

  constructor(stream: NodeJS.WriteStream, now: () => number) {
    this.#stream = stream
    this.#now = now
  }

  /** Takes output in pieces that may end anywhere. */
  take(name: string, chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = (lines.pop() ?? '').slice(-1000)
    const last = lines.findLast((line) => line.startsWith('progress: '))
    if (last) this.#show(`${name}: ${last.slice('progress: '.length)}`)
  }

  clear(): void {
    this.#rest = ''
    if (this.#stream.isTTY) this.#stream.write('\r\x1b[2K')
  }

  #show(text: string): void {
    if (this.#stream.isTTY) {
      this.#stream.write(`\r\x1b[2K${text.slice(0, this.#stream.columns - 1)}`)
      return
    }
    if (this.#now() - this.#lastShown < 30_000) return
    this.#lastShown = this.#now()
    this.#stream.write(`${text}\n`)
  }
}
