import { createWriteStream } from 'node:fs'
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Where exports keep their files. */
export interface ExportStorage {
  /**
   * Writes all of `content` under `key`. The key stays without a file until the whole file is stored. When `content` fails, stores nothing
   * and rejects with its error.
   */
  write(key: string, content: AsyncIterable<string>): Promise<void>
  /** The file from its beginning; `null` without one. Read the stream to its end or destroy it. */
  read(key: string): Promise<{ content: Readable; bytes: number } | null>
  /** Removes the file, if any, and where possible the rest of an interrupted `write`. */
  remove(key: string): Promise<void>
}

/** An id, an attempt and an extension. Any other key could leave the folder. */
const KEY = /^[a-z0-9-]+\.[a-z]+$/

export function checkedKey(key: string): string {
  if (!KEY.test(key)) throw new Error(`not a key of an export: ${key}`)
  return key
}

/** Keeps exports in a folder that only this account can read. The first file creates it. */
export function openLocalStorage(folder: string): ExportStorage {
  const fileOf = (key: string) => join(folder, checkedKey(key))
  const draftOf = (key: string) => `${fileOf(key)}.part`
  return {
    async write(key, content) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await chmod(folder, 0o700)
      try {
        const draft = createWriteStream(draftOf(key), { mode: 0o600, flush: true })
        await pipeline(Readable.from(content), draft)
        await rename(draftOf(key), fileOf(key))
        await syncFolder(folder)
      } catch (error) {
        await rm(draftOf(key), { force: true })
        throw error
      }
    },
    async read(key) {
      const file = await open(fileOf(key), 'r').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null
        throw error
      })
      if (!file) return null
      // Read through the handle, so that a file that is removed meanwhile can be read to its end.
      const { size } = await file.stat()
      return { content: file.createReadStream(), bytes: size }
    },
    async remove(key) {
      await rm(fileOf(key), { force: true })
      await rm(draftOf(key), { force: true })
    },
  }
}

/** A rename is on disk once its folder is. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
