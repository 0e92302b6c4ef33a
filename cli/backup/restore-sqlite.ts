import { existsSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { Failure } from '../failures.ts'
import { copySqlite, makePrivateFile, type RestoredCopy } from './backup.ts'
import { shellWord } from './postgres-tools.ts'

/** `present`: the file of DATABASE_URL, which is never touched. `to`: the file to make, beside the present one unless given. */
export function sqliteCopy(backup: string, present: string, to: string | undefined): RestoredCopy {
  const beside = (word: string) => {
    const end = extname(present)
    return join(dirname(present), `${basename(present, end)}-${word}${end}`)
  }
  const target = resolve(to ?? beside('restored'))
  const refuseTaken = () => {
    if (!existsSync(target)) return
    throw new Failure(`${target} exists already. Name a file that does not with --to.`)
  }
  refuseTaken()
  const folder = `${target}.${process.pid}.tmp`
  const draft = join(folder, 'draft')
  return {
    place: target,
    draftUrl: `sqlite:${draft}`,
    url: `sqlite:${target}`,
    async load() {
      makePrivateFile(folder, draft)
      await copySqlite(backup, draft, 'integrity_check').catch((error: unknown) => {
        throw damaged(backup, error)
      })
    },
    async keep() {
      // Two restores at once: the second one must not replace the first one's file.
      refuseTaken()
      renameSync(draft, target)
      rmSync(folder, { recursive: true, force: true })
    },
    async discard() {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
    swapCommands() {
      const now = new Date().toISOString().replace(/[-:]|\.\d+/g, '')
      const former = beside(`former-${now}`)
      // The log of a service that was killed belongs to its database and moves with it.
      return [
        `for end in '' -wal -shm; do [ ! -e ${shellWord(present)}$end ] || mv ${shellWord(present)}$end ${shellWord(former)}$end; done`,
        `mv ${shellWord(target)} ${shellWord(present)}`,
      ]
    },
  }
}

const DAMAGE = /^SQLITE_(NOTADB|CORRUPT)/

function damaged(backup: string, error: unknown): unknown {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (typeof code !== 'string' || !DAMAGE.test(code)) return error
  return new Failure(`${backup} is damaged (${message}). Restore another backup.`, { code: 'unavailable' })
}
