import { createWriteStream } from 'node:fs'
import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'

/** Files in a folder or a bucket. */
export interface FileStorage {
  /**
   * Writes all of `content` under `key`. The key stays without a file until the whole file is stored. When `content` fails, stores nothing
   * and rejects with its error.
   */
  write(key: string, content: AsyncIterable<string>): Promise<void>
  /** Writes a text durably under a key that is not taken. Returns false if it is taken by another text. */
  create(key: string, content: string): Promise<boolean>
  /** The file from its beginning; `null` without one. Read the stream to its end or destroy it. */
  read(key: string): Promise<{ content: Readable; bytes: number } | null>
  /** Removes the file, if any, and where possible the rest of an interrupted `write`. */
  remove(key: string): Promise<void>
  /** Whether the storage itself refuses to replace or delete what it holds; `null` when it does not say. */
  isWriteOnce(): Promise<boolean | null>
  close(): void
}

/** A name and an extension. Any other key could leave the folder. */
const KEY = /^[a-z0-9-]+\.[a-z]+$/

export function checkedKey(key: string): string {
  if (!KEY.test(key)) throw new Error(`not a key of a file: ${key}`)
  return key
}

/** The text of a file; `null` without one. */
export async function readText(storage: FileStorage, key: string): Promise<string | null> {
  const file = await storage.read(key)
  return file && text(file.content)
}

/** Keeps files that only this account can read. The first file creates the folder. */
export function openFolder(folder: string): FileStorage {
  const fileOf = (key: string) => join(folder, checkedKey(key))
  const draftOf = (key: string) => `${fileOf(key)}.part`
  const create = async (key: string, content: string): Promise<boolean> => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const found = await readFile(fileOf(key), 'utf8').catch(nullFor('ENOENT'))
    if (found === content) return true
    // A file that ends too early is what a crash left of this text; it is written again.
    if (found !== null && !content.startsWith(found)) return false
    const file = await open(fileOf(key), found === null ? 'wx' : 'r+', 0o600).catch(nullFor('EEXIST'))
    // Another process has created it since it was read.
    if (!file) return create(key, content)
    try {
      await file.write(content, 0)
      await file.sync()
    } finally {
      await file.close()
    }
    await syncFolder(folder)
    return true
  }
  return {
    create,
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
      const file = await open(fileOf(key), 'r').catch(nullFor('ENOENT'))
      if (!file) return null
      // Read through the handle, so that a file that is removed meanwhile can be read to its end.
      const { size } = await file.stat()
      return { content: file.createReadStream(), bytes: size }
    },
    async remove(key) {
      await rm(fileOf(key), { force: true })
      await rm(draftOf(key), { force: true })
    },
    isWriteOnce: () => Promise.resolve(null),
    close: () => undefined,
  }
}

/** A new name is on disk once its folder is. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  await handle.sync().finally(() => handle.close())
}

function nullFor(code: string): (error: NodeJS.ErrnoException) => null {
  return (error) => {
    if (error.code === code) return null
    throw error
  }
}
