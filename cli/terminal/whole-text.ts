import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Characters that are kept in memory at most, and bytes that are read back at once. */
const PIECE = 1_000_000

/**
 * A text of any length that is written to stdout whole or not at all: a command that is interrupted or fails prints no partial
 * document. Text that is too long for memory is kept in an unlinked file, which the system deletes when the process ends.
 */
export class WholeText {
  #pieces: string[] = []
  #length = 0
  #file: number | null = null

  add(text: string): void {
    this.#pieces.push(text)
    this.#length += text.length
    if (this.#length >= PIECE) this.#putAside()
  }

  async print(): Promise<void> {
    if (this.#file === null) return write(this.#pieces.join(''))
    this.#putAside()
    const buffer = Buffer.alloc(PIECE)
    for (let from = 0; ; ) {
      const length = readSync(this.#file, buffer, 0, PIECE, from)
      if (length === 0) break
      await write(Buffer.from(buffer.subarray(0, length)))
      from += length
    }
    closeSync(this.#file)
  }

  #putAside(): void {
    this.#file ??= namelessFile()
    const bytes = Buffer.from(this.#pieces.join(''))
    for (let written = 0; written < bytes.length; ) written += writeSync(this.#file, bytes, written)
    this.#pieces = []
    this.#length = 0
  }
}

/** Created with permissions for this user only. */
function namelessFile(): number {
  const path = join(tmpdir(), `affiliate-${randomUUID()}`)
  const file = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return file
}

/** Resolves when the reader at the other end is ready for more. */
async function write(text: string | Buffer): Promise<void> {
  if (process.stdout.write(text)) return
  await new Promise((resolve) => process.stdout.once('drain', resolve))
}
