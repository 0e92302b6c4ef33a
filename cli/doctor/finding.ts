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

export function ok(name: string, detail: string): Finding {
  return { name, state: 'ok', detail, mend: null }
}

export function info(name: string, detail: string): Finding {
  return { name, state: 'info', detail, mend: null }
}

export function warn(name: string, detail: string, mend: string): Finding {
  return { name, state: 'warn', detail, mend }
}

export function fail(name: string, detail: string, mend: string): Finding {
  return { name, state: 'fail', detail, mend }
}

/** An error's own words on one line. */
export function wordsOf(error: unknown): string {
  const { detail, message, code } = error as { detail?: unknown; message?: unknown; code?: unknown }
  return String(detail || message || code || error).replace(/\s+/g, ' ')
}

/** A database that cannot be used: what is wrong, and who can fix it. */
export function databaseFailure(error: unknown, name = 'database'): Finding {
  const problem = databaseProblem(error)
  if (problem !== null) return fail(name, `${problem.says} (${wordsOf(error)})`, problem.remedy)
  return fail(name, wordsOf(error), 'Correct this, and run "affiliate doctor" again.')
}
