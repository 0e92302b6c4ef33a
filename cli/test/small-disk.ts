import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A file system of its own that can be made really full. */
export interface SmallDisk {
  folder: string
  /** Takes all the room that is left. */
  fill(): void
  /** Gives it back. */
  free(): void
  close(): Promise<void>
}

const MEGABYTE = 1_000_000
/** Takes it away when its stdin ends: however this process ends, no file system is left behind. */
const GUARD = 'cat > /dev/null; umount "$0" 2> /dev/null || umount -l "$0"; rmdir "$0"'

/** `null` where this user may mount nothing. */
export function openSmallDisk(megabytes: number): SmallDisk | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-small-disk-'))
  const options = `size=${megabytes}m,mode=0700`
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'affiliate-small-disk', folder])
  if (status !== 0) {
    rmSync(folder, { recursive: true })
    return null
  }
  const guard = spawn('sh', ['-c', GUARD, folder], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  const gone = once(guard, 'exit')
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill() {
      const file = openSync(ballast, 'a')
      const lot = Buffer.alloc(MEGABYTE)
      try {
        // A write that no longer fits whole is cut off, so that the last ones fill the last page.
        for (let size = lot.length; size > 0; ) size = tookAll(file, lot.subarray(0, size)) ? size : size >> 1
      } finally {
        closeSync(file)
      }
    },
    free: () => rmSync(ballast, { force: true }),
    async close() {
      guard.stdin.end()
      await gone
    },
  }
}

function tookAll(file: number, bytes: Buffer): boolean {
  try {
    return writeSync(file, bytes) === bytes.length
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false
    throw error
  }
}
