import { existsSync, statSync } from 'node:fs'
import { databaseProblem } from '../../server/platform/database/database-problems.ts'

/** The result of one check, and how to fix it. */
export interface Finding {
  name: string
  /** `fail` keeps the service from its work, `warn` is for a person to look at, `info` only tells. */
  state: 'ok' | 'warn' | 'fail' | 'info'
  detail: string
  mend: string | null
}

/** What checks have found: one thing, several, or nothing. */
export type Found = Finding | null | Found[]

export function findingsIn(found: Found): Finding[] {
  if (Array.isArray(found)) return found.flatMap(findingsIn)
  return found === null ? [] : [found]
}

/** The findings about one part of the service, by what state it is in. */
export function about(name: string) {
  return {
    ok: (detail: string): Finding => ({ name, state: 'ok', detail, mend: null }),
    info: (detail: string): Finding => ({ name, state: 'info', detail, mend: null }),
    warn: (detail: string, mend: string): Finding => ({ name, state: 'warn', detail, mend }),
    fail: (detail: string, mend: string): Finding => ({ name, state: 'fail', detail, mend }),
  }
}

/** Whether others can read a file; nothing where there is none. */
export function privacyOf(name: string, file: string): Found {
  if (!existsSync(file)) return null
  const mode = statSync(file).mode & 0o777
  if ((mode & 0o077) === 0) return about(name).ok(`${file} is readable to its owner only`)
  return about(name).warn(`${file} is readable to others (mode ${mode.toString(8)})`, `chmod 600 ${file}`)
}

/** An error's own words on one line. */
export function wordsOf(error: unknown): string {
  const { detail, message, code } = error as { detail?: unknown; message?: unknown; code?: unknown }
  return String(detail || message || code || error).replace(/\s+/g, ' ')
}

/** A database that cannot be used: what is wrong, and who can fix it. */
export function databaseFailure(error: unknown, name = 'database'): Finding {
  const problem = databaseProblem(error)
  if (problem === null)
    return about(name).fail(wordsOf(error), 'Correct this, and run "affiliate doctor" again.')
  return about(name).fail(`${problem.says} (${wordsOf(error)})`, problem.remedy)
}
