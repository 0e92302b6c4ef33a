import { randomInt } from 'node:crypto'
import { formatMoney } from '../../shared/money.ts'
import { raiseFlag } from '../moderation/flags.service.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { type BackoffPolicy, retryDelay } from '../platform/queue/backoff.rule.ts'
import type { AttemptKind } from './attempt.entity.ts'
import { ATTEMPT_QUEUE, type AttemptRow, insertAttempts, listAttempts } from './attempts.store.ts'
import type { OurRecord, Standing } from './records.rule.ts'

export { listAttempts } from './attempts.store.ts'

export interface NewAttempt {
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
 * Records the intention to call the processor, in the transaction that makes the call due. Returns the attempt's id, which is the
 * idempotency key of every try. The database refuses a second attempt beside a waiting or successful one.
 */
export async function queueAttempt(platform: Platform, tx: Tx, attempt: NewAttempt): Promise<string> {
  const [id] = (await queueAttempts(platform, tx, [attempt])) as [string]
  return id
}

/** The same for many calls, all or none. */
export async function queueAttempts(
  platform: Platform,
  tx: Tx,
  attempts: readonly NewAttempt[],
): Promise<string[]> {
  if (attempts.length === 0) return []
  const rows = attempts.map((attempt) => waitingRow(platform, attempt))
  await insertAttempts(tx, rows)
  afterCommit(tx, () => platform.signals.send('attempts'))
  return rows.map(({ id }) => id)
}

function waitingRow(platform: Platform, attempt: NewAttempt): AttemptRow {
  const now = platform.clock.now()
  return {
    id: platform.ids.next(),
    kind: attempt.kind,
    subject_id: attempt.subjectId,
    amount: attempt.amount,
    request: JSON.stringify(attempt.request),
    state: 'waiting',
    tries: attempt.lookUpFirst ? 1 : 0,
    next_try_at: now,
    unknown_at: null,
    lease_token: null,
    lease_until: 0,
    processor_id: null,
    detail: null,
    created_at: now,
    settled_at: null,
  }
}

export interface ClaimedAttempt {
  id: string
  kind: AttemptKind
  subjectId: string
  amount: number
  request: Record<string, unknown>
  /** Epoch ms. */
  createdAt: number
  /** Tries before this one. Above zero the outcome of an earlier one may be unknown. */
  earlierTries: number
  /** When the latest one with an unknown outcome was made, epoch ms; `null` without one. */
  unknownAt: number | null
  /** The fencing token of the claim. */
  token: string
}

/** Claims due attempts. A try is counted before its call, so that a crash in between counts as an unknown outcome. */
export async function claimAttempts(platform: Platform, limit: number): Promise<ClaimedAttempt[]> {
  const now = platform.clock.now()
  // Longer than a look-up and a call can take: the lease must not end during a call.
  const until = now + 2 * platform.config.PROCESSOR_TIMEOUT_MS + 5000
  const lease = { token: platform.ids.next(), until }
  const rows = await ATTEMPT_QUEUE.claim(platform.database, { now, limit, lease, set: { unknown_at: now } })
  return rows.map((row) => ({
    id: row.id,
    kind: row.kind,
    subjectId: row.subject_id,
    amount: row.amount,
    request: JSON.parse(row.request),
    createdAt: row.created_at,
    earlierTries: row.tries,
    unknownAt: row.unknown_at,
    token: lease.token,
  }))
}

/** The processor has it. Returns false when another worker settled the attempt: then nothing may be recorded. */
export function settleCreated(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  processorId: string,
): Promise<boolean> {
  const settled_at = platform.clock.now()
  return ATTEMPT_QUEUE.complete(tx, attempt, {
    state: 'created',
    processor_id: processorId,
    settled_at,
    detail: null,
  })
}

/** A final refusal by the processor or by us: the call did not happen, and a person decides what follows. */
export async function settleRefused(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  { detail, summary }: { detail: string; summary: string },
): Promise<void> {
  const settled_at = platform.clock.now()
  if (!(await ATTEMPT_QUEUE.complete(tx, attempt, { state: 'refused', settled_at, detail }))) return
  await flag(platform, tx, attempt, { kind: 'processor_refusal', summary, detail })
}

const RETRY: BackoffPolicy = { firstMs: 2000, factor: 2, maxMs: 600_000 }
/** After so many tries without an outcome a flag is raised; the attempt goes on. */
const TRIES_BEFORE_FLAG = 12

export interface Postponement {
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
  const tries = attempt.earlierTries + 1
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
function unknownBefore({ unknownAt }: ClaimedAttempt, now: number): number | null {
  return unknownAt === null ? null : Math.min(unknownAt, now)
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
    tries: attempt.earlierTries,
    unknown_at: unknownBefore(attempt, now),
    detail,
  })
}

/** The processor holds something else than was requested: nothing moves until a person has checked it. */
export function flagDisagreement(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  detail: string,
): Promise<void> {
  const summary = `The processor and we do not agree about this ${attempt.kind}: ${detail}`
  return flag(platform, tx, attempt, { kind: 'processor_disagrees', summary, detail })
}

async function flag(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  about: { kind: 'processor_refusal' | 'processor_disagrees'; summary: string; detail: string },
): Promise<void> {
  await raiseFlag(platform, tx, {
    kind: about.kind,
    subjectType: attempt.kind === 'invoice' ? 'billing_cycle' : 'payout',
    subjectId: attempt.subjectId,
    summary: about.summary,
    evidence: { attempt_id: attempt.id, amount: formatMoney(attempt.amount), detail: about.detail },
  })
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

/** A billing cycle or payout before its call's outcome is known. `standing` null: the processor has no id for it yet. */
export interface RecordRow {
  id: string
  amount: number
  processorId: string | null
  standing: Exclude<Standing, 'unsent' | 'refused'> | null
}

/** Our side of a reconciliation. A row without a standing is `refused` or `unsent`, by its last attempt. */
export async function recordsOf(
  db: Queries,
  kind: AttemptKind,
  rows: readonly RecordRow[],
): Promise<OurRecord[]> {
  const records: OurRecord[] = []
  for (const row of rows) {
    const standing = row.standing ?? (await unsettledStanding(db, kind, row.id))
    records.push({ kind, id: row.id, standing, amount: row.amount, processorId: row.processorId })
  }
  return records
}

async function unsettledStanding(db: Queries, kind: AttemptKind, subjectId: string): Promise<Standing> {
  const attempt = (await listAttempts(db, kind, subjectId)).at(-1)
  return attempt?.state === 'refused' ? 'refused' : 'unsent'
}
