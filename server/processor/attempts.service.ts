import { randomInt } from 'node:crypto'
import { formatMoney } from '../../shared/money.ts'
import { raiseFlag } from '../moderation/flags.service.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { type BackoffPolicy, retryDelay } from '../platform/queue/backoff.rule.ts'
import type { AttemptKind } from './attempt.entity.ts'
import {
  type AttemptRow,
  attemptsFor,
  attemptWaitsBeyond,
  claimDueAttempts,
  insertAttempts,
  makeAttemptsDue,
  nextAttemptDueAt,
  updateLeased,
} from './attempts.store.ts'
import type { OurRecord, Standing } from './records.rule.ts'

export interface NewAttempt {
  kind: AttemptKind
  /** The billing cycle or payout. */
  subjectId: string
  /** Paisa; frozen from here on. */
  amount: number
  /** What else goes into the call, frozen as well. */
  request: Record<string, unknown>
  /** The processor may hold something under the subject already: it is asked before the first call too. */
  lookUpFirst?: boolean
}

/**
 * Notes the intention to call the processor, in the transaction that makes the call due. The attempt's id is the
 * idempotency key of every try, and the answer. A second attempt beside a waiting or successful one is refused by the database.
 */
export async function queueAttempt(platform: Platform, tx: Tx, attempt: NewAttempt): Promise<string> {
  const row = waitingRow(platform, attempt)
  await addAttempts(platform, tx, [row])
  return row.id
}

/** The same for many calls at once, all of which or none are noted. */
export async function queueAttempts(
  platform: Platform,
  tx: Tx,
  attempts: readonly NewAttempt[],
): Promise<void> {
  if (attempts.length === 0) return
  await addAttempts(
    platform,
    tx,
    attempts.map((attempt) => waitingRow(platform, attempt)),
  )
}

async function addAttempts(platform: Platform, tx: Tx, rows: readonly AttemptRow[]): Promise<void> {
  await insertAttempts(tx, rows)
  afterCommit(tx, () => platform.signals.send('attempts'))
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
  /** Tries before this one. Above zero the outcome of an earlier one may be unknown. */
  earlierTries: number
  /** When one of them was made last whose outcome is unknown, epoch ms; `null` when there is none. */
  unknownAt: number | null
  leaseToken: string
}

/** Takes due attempts; a try is counted before its call, so that a crash in between counts as unknown. */
export async function claimAttempts(platform: Platform, limit: number): Promise<ClaimedAttempt[]> {
  const now = platform.clock.now()
  const token = platform.ids.next()
  // Longer than any call can take, with its look-up: the lease must not end while a call is under way.
  const until = now + 2 * platform.config.PROCESSOR_TIMEOUT_MS + 5000
  const rows = await platform.database.transaction((tx) =>
    claimDueAttempts(tx, platform.database.dialect, { now, limit, token, until }),
  )
  if (rows.length === 0 && (await bringBack(platform, now))) return claimAttempts(platform, limit)
  return rows.map((row) => ({
    id: row.id,
    kind: row.kind,
    subjectId: row.subject_id,
    amount: row.amount,
    request: JSON.parse(row.request),
    earlierTries: row.tries,
    unknownAt: row.unknown_at,
    leaseToken: token,
  }))
}

/** The longest pause that a processor may ask for; no attempt waits for longer. */
const LONGEST_WAIT_MS = 24 * 3_600_000

/** Attempts that wait for longer than any may have seen the clock put back: they are due now, and are looked up first. */
async function bringBack(platform: Platform, now: number): Promise<boolean> {
  const after = now + LONGEST_WAIT_MS
  if (!(await attemptWaitsBeyond(platform.database.reader, after))) return false
  await platform.database.transaction((tx) => makeAttemptsDue(tx, after, now))
  return true
}

/** The processor has it. False when another worker settled the attempt meanwhile: then nothing must be recorded. */
export function settleCreated(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  processorId: string,
): Promise<boolean> {
  return updateLeased(
    tx,
    { id: attempt.id, token: attempt.leaseToken },
    { state: 'created', processor_id: processorId, settled_at: platform.clock.now(), detail: null },
  )
}

/** A final no, the processor's or our own: known not to have happened, so a person decides what follows. */
export async function settleRefused(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  { detail, summary }: { detail: string; summary: string },
): Promise<void> {
  const settled = await updateLeased(
    tx,
    { id: attempt.id, token: attempt.leaseToken },
    { state: 'refused', settled_at: platform.clock.now(), detail },
  )
  if (!settled) return
  await raiseFlag(platform, tx, {
    kind: 'processor_refusal',
    subjectType: subjectType(attempt.kind),
    subjectId: attempt.subjectId,
    summary,
    evidence: { attempt_id: attempt.id, amount: formatMoney(attempt.amount), detail },
  })
}

const RETRY: BackoffPolicy = { firstMs: 2000, factor: 2, maxMs: 600_000 }
/** After so many tries without an outcome a person is told; the attempt goes on all the same. */
const TRIES_BEFORE_FLAG = 12

export interface Postponement {
  detail: string
  leastDelayMs?: number | undefined
  /** Whether a call was made that may have taken effect: what is said of this try then stays open. */
  mayHaveTakenEffect: boolean
}

/** No outcome yet: tried again with the same key, after a look-up. */
export async function postpone(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  { detail, leastDelayMs = 0, mayHaveTakenEffect }: Postponement,
): Promise<void> {
  const tries = attempt.earlierTries + 1
  const delay = Math.max(leastDelayMs, retryDelay(tries, RETRY, randomInt(1_000_000) / 1_000_000))
  const now = platform.clock.now()
  const open = mayHaveTakenEffect ? {} : { unknown_at: unknownBefore(attempt, now) }
  await updateLeased(
    tx,
    { id: attempt.id, token: attempt.leaseToken },
    { next_try_at: now + delay, detail, ...open },
  )
  if (tries === TRIES_BEFORE_FLAG) await flagDisagreement(platform, tx, attempt, `no outcome: ${detail}`)
}

/** As it was before this try, which did nothing. A time to come was noted before the clock was put back: the wait begins anew. */
function unknownBefore({ unknownAt }: ClaimedAttempt, now: number): number | null {
  return unknownAt === null ? null : Math.min(unknownAt, now)
}

/** Not sent at all (its creator is suspended): the try does not count, and is made later. */
export async function putBack(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  detail: string,
  delayMs: number,
): Promise<void> {
  const now = platform.clock.now()
  await updateLeased(
    tx,
    { id: attempt.id, token: attempt.leaseToken },
    {
      tries: attempt.earlierTries,
      next_try_at: now + delayMs,
      unknown_at: unknownBefore(attempt, now),
      detail,
    },
  )
}

/** What the processor holds is not what we asked for: nothing moves until a person has looked. */
export async function flagDisagreement(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  detail: string,
): Promise<void> {
  await raiseFlag(platform, tx, {
    kind: 'processor_disagrees',
    subjectType: subjectType(attempt.kind),
    subjectId: attempt.subjectId,
    summary: `The processor and we do not agree about this ${attempt.kind}: ${detail}`,
    evidence: { attempt_id: attempt.id, amount: formatMoney(attempt.amount), detail },
  })
}

export function nextAttemptDue(platform: Platform): Promise<number | null> {
  return nextAttemptDueAt(platform.database.reader)
}

/** Every attempt made for one billing cycle or payout, oldest first. */
export function listAttempts(db: Queries, kind: AttemptKind, subjectId: string): Promise<AttemptRow[]> {
  return attemptsFor(db, kind, subjectId)
}

function subjectType(kind: AttemptKind): 'billing_cycle' | 'payout' {
  return kind === 'invoice' ? 'billing_cycle' : 'payout'
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
