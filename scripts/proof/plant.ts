import { execFileSync } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PlantedBug } from './planted-bugs.ts'

/** The file's text with the bug in it. Throws unless the bug applies at exactly one place. */
export function planted(text: string, bug: PlantedBug): string {
  const places = text.split(bug.find).length - 1
  if (places !== 1) throw new Error(`"${bug.name}" fits ${places} places of ${bug.file}, not one`)
  if (bug.replace === bug.find) throw new Error(`"${bug.name}" changes nothing`)
  return text.replace(bug.find, () => bug.replace)
}

export interface TreeCopy {
  root: string
  /** Puts the bug in, runs `work`, and takes it out again. */
  withBug<T>(bug: PlantedBug, work: () => Promise<T>): Promise<T>
  remove(): Promise<void>
}

/** A copy of the working tree without what git ignores; it shares the installed packages. */
export async function copyTree(from: string): Promise<TreeCopy> {
  const root = await mkdtemp(join(tmpdir(), 'affiliate-planted-'))
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: from,
    encoding: 'utf8',
  })
  const files = listed.split('\0').filter((file) => file !== '')
  for (const file of files) await cp(join(from, file), join(root, file)).catch(ignoreDeleted)
  await symlink(join(from, 'node_modules'), join(root, 'node_modules'))
  return {
    root,
    async withBug(bug, work) {
      const path = join(root, bug.file)
      const text = await readFile(path, 'utf8')
      await writeFile(path, planted(text, bug))
      try {
        return await work()
      } finally {
        await writeFile(path, text)
      }
    },
    remove: () => rm(root, { recursive: true, force: true }),
  }
}

/** Listed by git, but deleted in the working tree. */
function ignoreDeleted(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
