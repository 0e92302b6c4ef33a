import { mkdir, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SealConflict, type SealStorage } from './seal-storage.ts'

/** Keeps seals as files, each on disk before `create` returns. */
export function openSealFolder(folder: string): SealStorage {
  const read = (name: string) => readFile(join(folder, name), 'utf8').catch(nullWithoutFile)
  const create = async (name: string, text: string): Promise<void> => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const found = await read(name)
    if (found === text) return
    // A file that ends too early is what a crash left of this text; it is written again.
    if (found !== null && !text.startsWith(found)) throw new SealConflict(name)
    const file = await open(join(folder, name), found === null ? 'wx' : 'r+', 0o600).catch(nullWhereTaken)
    // Another process has created it since it was read.
    if (!file) return create(name, text)
    try {
      await file.write(text, 0)
      await file.sync()
    } finally {
      await file.close()
    }
    await syncFolder(folder)
  }
  return {
    read,
    create,
    isWriteOnce: () => Promise.resolve(null),
    close: () => undefined,
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  await handle.sync().finally(() => handle.close())
}

function nullWhereTaken(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null
  throw error
}

function nullWithoutFile(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
  throw error
}
