import { randomInt } from 'node:crypto'
import { type RawBuilder, type Selectable, type SqlBool, sql } from 'kysely'
import { formatMoney } from '../../shared/money.ts'
import { type FlagKind, raiseFlag } from '../flags/flags.service.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { inList } from '../platform/database/bulk-values.ts'
import { afterCommit, dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import {
  digestOf,
  insertRows,
  type NewRow,
  noteChange,
  rowProblem,
} from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { type BackoffPolicy, retryDelay } from '../platform/queue/backoff.rule.ts'
import { LeaseQueue } from '../platform/queue/lease-queue.ts'
import type { AttemptKind } from './attempt.entity.ts'
import type { Processor } from './processor.ts'
import type { OurRecord, Standing } from './records.rule.ts'
import type { AttemptStanding } from './retry.rule.ts'

type AttemptRow = Selectable<Schema['processor_attempts']>

/** The longest pause that a processor may request, ms. No attempt waits for longer. */
const LONGEST_WAIT_MS = 24 * 3_600_000

/** Attempts that wait for their outcome. */
const ATTEMPT_QUEUE = new LeaseQueue<AttemptRow>({
  name: 'processor_attempts',
  isOpen: sql`state = 'waiting'`,
  dueAt: 'next_try_at',
  leaseUntil: 'lease_until',
  attempts: 'tries',
  maxDelayMs: LONGEST_WAIT_MS,
})

/** What a call is about, as flags and the audit trail name it. */
export function subjectOf(kind: AttemptKind, subjectId: string) {
  return { subjectType: kind === 'invoice' ? ('billing_cycle' as const) : ('payout' as const), subjectId }
}

export function attemptState({ state, failed_at }: Pick<AttemptRow, 'state' | 'failed_at'>): AttemptStanding {
  return state === 'created' && failed_at !== null ? 'failed' : state
}

interface NewAttempt {
  kind: AttemptKind
  /** The billing cycle or payout. */
  subjectId: string
  /** Paisa; frozen from now on. */
  amount: number
  /** What else goes into the call, frozen as well. */
  request: Record<string, unknown>
  /** The processor may hold something under the subject already: it is looked up before the first call too. */
  lookUpFirst?: boolean
}

/**
 * Records the intention to make these calls to the processor, all or none, in the transaction that makes them due. Returns the attempts'
 * ids, which are the idempotency keys of every try. The database refuses a second attempt beside a waiting or successful one.
 */
export async function queueAttempts(platform: Platform, tx: Tx, attempts: readonly NewAttempt[]) {
  if (attempts.length === 0) return []
  const now = platform.clock.now()
  const rows = attempts.map(
    ({ kind, subjectId, amount, request, lookUpFirst }): NewRow<'processor_attempts'> => ({
      id: platform.ids.next(),
      kind,
      subject_id: subjectId,
      amount,
      request: JSON.stringify(request),
      state: 'waiting',
      tries: lookUpFirst ? 1 : 0,
      next_try_at: now,
      lease_until: 0,
      created_at: now,
    }),
  )
  await insertRows(tx, 'processor_attempts', rows)
  afterCommit(tx, () => platform.topics.send('attempts'))
  return rows.map(({ id }) => id)
}

/** Has the waiting calls for these billing cycles or payouts made as soon as the transaction commits. */
export async function makeAttemptsDue(platform: Platform, tx: Tx, subjectIds: readonly string[]) {
  if (subjectIds.length === 0) return
  const now = platform.clock.now()
  await tx
    .updateTable('processor_attempts')
    .set({ next_try_at: now })
    .where(sql<SqlBool>`subject_id ${inList(dialectOf(tx), 'uuid', subjectIds)}`)
    .where('state', '=', 'waiting')
    .where('next_try_at', '>', now)
    .execute()
  afterCommit(tx, () => platform.topics.send('attempts'))
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

/** An attempt under a lease, as it was before the claim: an earlier try's outcome may be unknown while `tries` is above zero. */
export type ClaimedAttempt = AttemptRow & {
  /** The fencing token of the claim. */
  token: string
}

/** Claims due attempts. A try is counted before its call, so that a crash in between counts as an unknown outcome. */
export async function claimAttempts(platform: Platform, limit: number): Promise<ClaimedAttempt[]> {
  const now = platform.clock.now()
  // Longer than a look-up, a check of the account and a call can take: the lease must not end during a call.
  const until = now + 3 * platform.config.PROCESSOR_TIMEOUT_MS + 5000
  const lease = { token: platform.ids.next(), until }
  const rows = await ATTEMPT_QUEUE.claim(platform.database, { now, limit, lease, set: { unknown_at: now } })
  return rows.map((row) => ({ ...row, token: lease.token }))
}

/**
 * Records the outcome and, unless the service did not write the row, renews its digest with the processor's id. Returns false when another
 * worker settled the attempt: then nothing may be recorded.
 */
export async function settleAttempt(
  { keys, clock }: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  change: Pick<AttemptRow, 'state' | 'processor_id' | 'detail'>,
): Promise<boolean> {
  const { row_digest: from } = attempt
  const isAuthentic = rowProblem(keys, 'processor_attempts', attempt) === null
  const to = isAuthentic ? digestOf(keys, 'processor_attempts', { ...attempt, ...change }) : from
  const result = { ...change, settled_at: clock.now(), row_digest: to }
  const isOurs = await ATTEMPT_QUEUE.complete(tx, attempt, result)
  if (isOurs) noteChange('processor_attempts', from, to)
  return isOurs
}

/** The processor reports that what a successful call created has failed. Returns the attempt's id, or `null` if that is known. */
export async function markFailed(platform: Platform, tx: Tx, kind: AttemptKind, processorId: string) {
  const marked = await tx
    .updateTable('processor_attempts')
    .set({ failed_at: platform.clock.now() })
    .where('processor_id', '=', processorId)
    .where('kind', '=', kind)
    .where('state', '=', 'created')
    .where('failed_at', 'is', null)
    .returning('id')
    .executeTakeFirst()
  return marked?.id ?? null
}

/** Whether the service wrote an attempt that meets the condition. */
async function hasAttempt(keys: AppKeys, db: Queries, kind: AttemptKind, condition: RawBuilder<SqlBool>) {
  const query = db.selectFrom('processor_attempts').selectAll().where('kind', '=', kind).where(condition)
  const rows = await query.execute()
  return rows.some((row) => rowProblem(keys, 'processor_attempts', row) === null)
}

/** Whether the processor's id belongs to a call that it refused: then its events about it say nothing new. */
export function wasRefused(keys: AppKeys, db: Queries, kind: AttemptKind, processorId: string) {
  const isRefused = sql<SqlBool>`processor_id = ${processorId} and state = 'refused'`
  return hasAttempt(keys, db, kind, isRefused)
}

/** Whether one of these billing cycles or payouts was created by a call with exactly this request. */
export function wasSentWith(
  keys: AppKeys,
  db: Queries,
  kind: AttemptKind,
  request: NewAttempt['request'],
  subjectIds: readonly string[],
): Promise<boolean> {
  const isSame = sql<SqlBool>`subject_id ${inList(dialectOf(db), 'uuid', subjectIds)}
    and state = 'created' and request = ${JSON.stringify(request)}`
  return hasAttempt(keys, db, kind, isSame)
}

/** Whether a call about a billing cycle or payout has no outcome yet. */
export async function isCallWaiting(db: Queries, kind: AttemptKind, subjectId: string): Promise<boolean> {
  return (await listAttempts(db, kind, subjectId)).some(({ state }) => state === 'waiting')
}

export interface Refusal {
  detail: string
  summary: string
  /** Of the record that the processor keeps for it. */
  processorId?: string | undefined
}

/** A final refusal by the processor or by us: the call did not happen, and a person decides what follows. */
export async function settleRefused(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  { detail, summary, processorId }: Refusal,
): Promise<void> {
  const change = { state: 'refused', detail, processor_id: processorId ?? null } as const
  if (!(await settleAttempt(platform, tx, attempt, change))) return
  await flag(platform, tx, attempt, 'processor_refusal', summary, detail)
}

const RETRY: BackoffPolicy = { firstMs: 2000, factor: 2, maxMs: 600_000 }
/** After so many tries without an outcome a flag is raised; the attempt goes on. */
const TRIES_BEFORE_FLAG = 12

interface Postponement {
  detail: string
  leastDelayMs?: number | undefined
  /** Whether a call was made that may have taken effect: the outcome of this try stays unknown. */
  mayHaveTakenEffect: boolean
}

/** No outcome yet: the attempt is tried again with the same key, after a look-up. */
export async function postpone(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  { detail, leastDelayMs = 0, mayHaveTakenEffect }: Postponement,
): Promise<void> {
  const tries = attempt.tries + 1
  const delay = Math.max(leastDelayMs, retryDelay(tries, RETRY, randomInt(1_000_000) / 1_000_000))
  const now = platform.clock.now()
  const unknown = mayHaveTakenEffect ? {} : { unknown_at: unknownBefore(attempt, now) }
  await ATTEMPT_QUEUE.defer(tx, attempt, now + delay, { detail, ...unknown })
  if (tries === TRIES_BEFORE_FLAG) await flagDisagreement(platform, tx, attempt, `no outcome: ${detail}`)
}

/**
 * `unknown_at` before this try, which had no effect. A time in the future was noted before the clock was set back, so the wait starts
 * again.
 */
function unknownBefore({ unknown_at }: ClaimedAttempt, now: number): number | null {
  return unknown_at === null ? null : Math.min(unknown_at, now)
}

/** The call was not made (its creator is suspended, for example): the try does not count and is made later. */
export async function defer(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  detail: string,
  delayMs: number,
): Promise<void> {
  const now = platform.clock.now()
  await ATTEMPT_QUEUE.defer(tx, attempt, now + delayMs, {
    tries: attempt.tries,
    unknown_at: unknownBefore(attempt, now),
    detail,
  })
}

/** The processor holds something else than was requested: nothing moves until a person has checked it. */
export function flagDisagreement(platform: Platform, tx: Tx, attempt: ClaimedAttempt, detail: string) {
  const summary = `The processor and we do not agree about this ${attempt.kind}: ${detail}`
  return flag(platform, tx, attempt, 'processor_disagrees', summary, detail)
}

function flag(
  platform: Platform,
  tx: Tx,
  { id, kind, subject_id, amount }: ClaimedAttempt,
  flagKind: FlagKind,
  summary: string,
  detail: string,
): Promise<void> {
  const evidence = { attempt_id: id, amount: formatMoney(amount), detail }
  return raiseFlag(platform, tx, { kind: flagKind, ...subjectOf(kind, subject_id), summary, evidence })
}

/** Everything that the processor holds for one billing cycle or payout. */
export async function lookUpRecords(db: Queries, processor: Processor, kind: AttemptKind, subjectId: string) {
  const attempts = await listAttempts(db, kind, subjectId)
  const keys = { reference: subjectId, attemptIds: attempts.map(({ id }) => id) }
  const found = await (kind === 'invoice' ? processor.findInvoices(keys) : processor.findPayouts(keys))
  if (found.kind === 'unavailable') return found
  return { kind: 'found' as const, items: found.items.filter((item) => item.reference === subjectId) }
}

/** When the next attempt is due (epoch ms); `null` while none waits. */
export function nextAttemptDueAt(platform: Platform): Promise<number | null> {
  return ATTEMPT_QUEUE.nextDueAt(platform.database.reader)
}

/** Which billing cycles or payouts are compared with the processor's records. Times in epoch ms. */
export interface RecordFilter {
  /** Settled ones from this time on; unsettled ones always. */
  since: number
  /** Changes after this time are left to the next run: the processor's event may still be on its way. */
  quietSince: number
  /** Ids that are compared whatever their state. */
  always: readonly string[]
}

/** One of our billing cycles or payouts. `standing` null: only the attempts show it. */
type RecordRow = Omit<OurRecord, 'kind' | 'standing'> & {
  standing: Exclude<Standing, 'unsent' | 'refused'> | null
}

/** Our side of a reconciliation. */
export async function recordsOf(db: Queries, kind: AttemptKind, rows: readonly RecordRow[]) {
  const records: OurRecord[] = []
  for (const { standing, ...row } of rows) {
    const attempt = standing === null ? (await listAttempts(db, kind, row.id)).at(-1) : undefined
    const shown = standing ?? (attempt ? STANDINGS[attemptState(attempt)] : 'unsent')
    records.push({ kind, ...row, standing: shown })
  }
  return records
}

const STANDINGS = { waiting: 'unsent', created: 'open', refused: 'refused', failed: 'failed' } as const
