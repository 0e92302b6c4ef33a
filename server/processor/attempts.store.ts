import { type Selectable, sql } from 'kysely'
import { bulkInsert } from '../platform/database/bulk-values.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { AttemptKind } from './attempt.entity.ts'

export type AttemptRow = Selectable<Schema['processor_attempts']>

/** Adds attempts. A second one beside a waiting or successful one makes the whole transaction fail. */
export const insertAttempts = bulkInsert<AttemptRow>('processor_attempts', {
  id: 'uuid',
  kind: 'text',
  subject_id: 'uuid',
  amount: 'bigint',
  request: 'text',
  state: 'text',
  tries: 'int',
  next_try_at: 'bigint',
  unknown_at: 'bigint',
  lease_token: 'text',
  lease_until: 'bigint',
  processor_id: 'text',
  detail: 'text',
  created_at: 'bigint',
  settled_at: 'bigint',
})

/** Any number that no other part of the service takes as its advisory lock. */
const CLAIM_LOCK = 7_041_949

/** Leases up to `limit` due attempts, oldest first, and answers them as they were before. */
export async function claimDueAttempts(
  tx: Tx,
  dialect: 'sqlite' | 'postgresql',
  claim: { now: number; limit: number; token: string; until: number },
): Promise<AttemptRow[]> {
  // On SQLite the transaction holds the write lock already.
  if (dialect === 'postgresql') await sql`select pg_advisory_xact_lock(${CLAIM_LOCK})`.execute(tx)
  const due = await tx
    .selectFrom('processor_attempts')
    .selectAll()
    .where('state', '=', 'waiting')
    .where('next_try_at', '<=', claim.now)
    .where('lease_until', '<=', claim.now)
    .orderBy('next_try_at')
    .orderBy('id')
    .limit(claim.limit)
    .execute()
  if (due.length === 0) return []
  // The try is counted before the call is made: after a crash in between, the outcome is unknown, not untried.
  const leased = await tx
    .updateTable('processor_attempts')
    .set((set) => ({
      lease_token: claim.token,
      lease_until: claim.until,
      tries: set('tries', '+', 1),
      unknown_at: claim.now,
    }))
    .where(
      'id',
      'in',
      due.map((row) => row.id),
    )
    .where('state', '=', 'waiting')
    .where('next_try_at', '<=', claim.now)
    .where('lease_until', '<=', claim.now)
    .returning('id')
    .execute()
  // Whoever held one of them until its lease ran out may have settled it since it was read.
  const ours = new Set(leased.map((row) => row.id))
  return due.filter((row) => ours.has(row.id))
}

/** Makes the attempts that wait for a time after `after` due at `now` (epoch ms), and ends their leases. */
export async function makeAttemptsDue(tx: Tx, after: number, now: number): Promise<void> {
  await tx
    .updateTable('processor_attempts')
    .set({ next_try_at: now, lease_token: null, lease_until: 0 })
    .where('state', '=', 'waiting')
    .where((where) => where.or([where('next_try_at', '>', after), where('lease_until', '>', after)]))
    .execute()
}

/** Whether an attempt waits, or is held, until a time after `after` (epoch ms). */
export async function attemptWaitsBeyond(db: Queries, after: number): Promise<boolean> {
  const row = await db
    .selectFrom('processor_attempts')
    .select('id')
    .where('state', '=', 'waiting')
    .where((where) => where.or([where('next_try_at', '>', after), where('lease_until', '>', after)]))
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Changes an attempt that this holder still has; false when the lease is somebody else's by now. */
export async function updateLeased(
  tx: Tx,
  attempt: { id: string; token: string },
  change: Partial<
    Pick<
      AttemptRow,
      'state' | 'next_try_at' | 'unknown_at' | 'processor_id' | 'detail' | 'settled_at' | 'tries'
    >
  >,
): Promise<boolean> {
  const updated = await tx
    .updateTable('processor_attempts')
    .set({ ...change, lease_token: null, lease_until: 0 })
    .where('id', '=', attempt.id)
    .where('state', '=', 'waiting')
    .where('lease_token', '=', attempt.token)
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

/** When the next attempt falls due (epoch ms); `null` when none waits. */
export async function nextAttemptDueAt(db: Queries): Promise<number | null> {
  const row = await db
    .selectFrom('processor_attempts')
    .select('next_try_at')
    .where('state', '=', 'waiting')
    .orderBy('next_try_at')
    .limit(1)
    .executeTakeFirst()
  return row?.next_try_at ?? null
}

/** All attempts for one billing cycle or payout, oldest first. */
export function attemptsFor(db: Queries, kind: AttemptKind, subjectId: string): Promise<AttemptRow[]> {
  return db
    .selectFrom('processor_attempts')
    .selectAll()
    .where('kind', '=', kind)
    .where('subject_id', '=', subjectId)
    .orderBy('id')
    .execute()
}
