import fs from 'node:fs'
import { promisify } from 'node:util'

/**
 * Has the disk take what SQLite has written to its log, in a thread of Node's own: what `synchronous = FULL` does at each commit, but
 * with this thread free for other work meanwhile. Whatever was committed when `sync` is called is safe when it resolves:
 * the log takes commits one behind the other, and syncing a file is syncing all that was written to it by anybody.
 */
export class WalSync {
  readonly #path: string
  #opening: Promise<number> | null = null

  constructor(file: string) {
    this.#path = `${file}-wal`
  }

  /** Rejects with the system's error when the disk does not take it. */
  async sync(): Promise<void> {
    const descriptor = await this.#descriptor()
    await promisify(fs.fdatasync)(descriptor)
  }

  async close(): Promise<void> {
    const opening = this.#opening
    this.#opening = null
    if (opening) await promisify(fs.close)(await opening)
  }

  /** SQLite keeps the one file for as long as anybody has the database open, as we have. Closing it drops no lock: those are on others. */
  async #descriptor(): Promise<number> {
    this.#opening ??= promisify(fs.open)(this.#path, 'r+')
    try {
      return await this.#opening
    } catch (error) {
      this.#opening = null
      throw error
    }
  }
}
