import { createWriteStream } from 'node:fs'
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { checkedKey, type ExportStorage } from './export-storage.ts'

/** Keeps exports in a folder that nobody else may look into. It is made with the first file. */
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
      // Read through the handle: a file that is removed on the way can still be read to its end.
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
