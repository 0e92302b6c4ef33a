import { type Selectable, type SqlBool, sql } from 'kysely'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { isId } from '../platform/ids.ts'
import { LeaseQueue } from '../platform/queue/lease-queue.ts'
import type { AttemptKind } from './attempt.entity.ts'

export type AttemptRow = Selectable<Schema['processor_attempts']>

/** The longest pause that a processor may request, ms. No attempt waits for longer. */
const LONGEST_WAIT_MS = 24 * 3_600_000

/** Attempts that wait for their outcome. */
export const ATTEMPT_QUEUE = new LeaseQueue<AttemptRow>({
  name: 'processor_attempts',
  isOpen: sql`state = 'waiting'`,
  dueAt: 'next_try_at',
  leaseUntil: 'lease_until',
  attempts: 'tries',
  maxDelayMs: LONGEST_WAIT_MS,
})

/** Waiting attempts that are due later are due at `dueAt` (epoch ms). */
export async function setAttemptsDue(tx: Tx, subjectIds: readonly string[], dueAt: number): Promise<void> {
  await tx
    .updateTable('processor_attempts')
    .set({ next_try_at: dueAt })
    .where(sql<SqlBool>`subject_id ${inList(dialectOf(tx), 'uuid', subjectIds)}`)
    .where('state', '=', 'waiting')
    .where('next_try_at', '>', dueAt)
    .execute()
}

/** All attempts for one billing cycle or payout, oldest first. */
export function listAttempts(db: Queries, kind: AttemptKind, subjectId: string): Promise<AttemptRow[]> {
  return db
    .selectFrom('processor_attempts')
    .selectAll()
    .where('kind', '=', kind)
    .where('subject_id', '=', subjectId)
    .orderBy('id')
    .execute()
}

/** Those of `texts` that are attempts of ours. Texts in another form than our ids are none. */
export async function knownAttemptIds(db: Queries, texts: readonly string[]): Promise<string[]> {
  const ids = texts.filter(isId)
  if (ids.length === 0) return []
  const rows = await db
    .selectFrom('processor_attempts')
    .select('id')
    .where(sql<SqlBool>`id ${inList(dialectOf(db), 'uuid', ids)}`)
    .execute()
  return rows.map(({ id }) => id)
}
