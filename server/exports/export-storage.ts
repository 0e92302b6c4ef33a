import type { Readable } from 'node:stream'

/** What exports need of the place that keeps their files. */
export interface ExportStorage {
  /**
   * Writes all of `content` under `key`. There is nothing to read under it before the whole file is kept, and
   * nothing at all when `content` fails, which rejects with its error.
   */
  write(key: string, content: AsyncIterable<string>): Promise<void>
  /** The file from its beginning; `null` when there is none. The stream must be read to its end or destroyed. */
  read(key: string): Promise<{ content: Readable; bytes: number } | null>
  /** Removes the file, and where one can tell, what an interrupted `write` left of it. No file is fine. */
  remove(key: string): Promise<void>
}

/** Keys are ours: an id, an attempt, an ending. Anything else could leave the folder. */
const KEY = /^[a-z0-9-]+\.[a-z]+$/

export function checkedKey(key: string): string {
  if (!KEY.test(key)) throw new Error(`not a key of an export: ${key}`)
  return key
}
