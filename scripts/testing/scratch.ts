import { access, chmod, constants, mkdtemp, readdir, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
/** With less, what a run writes could take the memory that its own processes need. */
const ENOUGH_BYTES = 8 * 1024 ** 3
const PREFIX = 'affiliate-test-run-'

/**
 * A folder for all that a run writes: in memory, unless `inMemory` is false, where there is plenty of it, since thousands of small transactions and
 * hundreds of databases wait for a disk most of their time. What they ask of it stays as it is (`fsync`,
 * `synchronous=FULL`), and no test claims anything about a disk. Takes away what runs that were killed have left behind.
 */
export async function makeScratch(inMemory = true): Promise<string> {
  const place = inMemory && (await hasPlenty(MEMORY)) ? MEMORY : tmpdir()
  await sweep(place)
  const scratch = await mkdtemp(join(place, `${PREFIX}${process.pid}-`))
  await letThrough(scratch)
  return scratch
}

/** The database server runs under an account of its own, and must reach its folder in there. */
export async function letThrough(folder: string): Promise<void> {
  await chmod(folder, 0o711)
}

async function hasPlenty(folder: string): Promise<boolean> {
  try {
    await access(folder, constants.W_OK)
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize >= ENOUGH_BYTES
  } catch {
    return false
  }
}

async function sweep(place: string): Promise<void> {
  for (const name of await readdir(place)) {
    const pid = name.startsWith(PREFIX) ? Number.parseInt(name.slice(PREFIX.length), 10) : 0
    if (pid && !runs(pid))
      await rm(join(place, name), { recursive: true, force: true }).catch(() => undefined)
  }
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
