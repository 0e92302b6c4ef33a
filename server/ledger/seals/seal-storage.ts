import { mkdir, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The write-once place outside the database that SEAL_STORAGE names. */
export interface SealStorage {
  /** The text under a name; `null` when there is none. */
  read(name: string): Promise<string | null>
  /** Writes a text durably under a name that is not taken. Throws when it is taken by another text. */
  create(name: string, text: string): Promise<void>
  /** Whether the storage itself refuses to replace or delete what it holds; `null` when it does not say. */
  isWriteOnce(): Promise<boolean | null>
  close(): void
}

/** Another seal is stored under a seal's name: the database was rolled back, or other seals were made. */
export class SealConflict extends Error {
  constructor(name: string) {
    super(`the seal storage holds another seal as ${name}: run "affiliate ledger verify"`)
    this.name = 'SealConflict'
  }
}

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
