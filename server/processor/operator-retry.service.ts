import type { Paisa } from '../../shared/money.ts'
import { recordAudit } from '../flags/audit.service.ts'
import { closeFlag, type FlagKind } from '../flags/flags.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { isId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import type { AttemptKind } from './attempt.entity.ts'
import { attemptState, listAttempts, lookUpRecords, queueAttempts, subjectOf } from './attempts.service.ts'
import type { LookupOutcome, Processor } from './processor.ts'
import { decideRetry } from './retry.rule.ts'

type Request = Record<string, unknown>

/** How a kind of processor call is retried. */
export interface RetryableCall<Row> {
  kind: AttemptKind
  action: 'billing.reissue' | 'payout.retry'
  find(db: Queries, id: string): Promise<Row | undefined>
  lock(tx: Tx, id: string): Promise<Row | undefined>
  /** Throws `not_found` or `conflict` if the row does not wait for its call. */
  assertWaiting(row: Row | undefined): asserts row is Row
  amount(row: Row): Paisa
  /** The request of the new call. */
  request(db: Queries, row: Row): Promise<Request>
  /** The flags that the new attempt resolves. */
  flagKinds: readonly FlagKind[]
  flagNote: string
}

export interface RetryRequest {
  /** A user's id, or `OPERATOR`. */
  actor: string
  reason: string | null
}

/**
 * Queues a new attempt with a new idempotency key after a final refusal or a reported failure, once the processor was asked what it holds. Throws `not_found`,
 * `conflict` (nothing to retry, or the processor holds something else) and `unavailable` (the processor does not answer). `adopts`: the
 * invoice or payout that the processor already holds under this reference, which the new attempt takes over.
 */
export async function retryCall<Row>(
  platform: Platform,
  processor: Processor,
  call: RetryableCall<Row>,
  id: string,
  { actor, reason }: RetryRequest,
) {
  const { reader } = platform.database
  await prepare(reader, call, id, isId(id) ? await call.find(reader, id) : undefined, null)
  const lookup = await lookUpRecords(reader, processor, call.kind, id)
  return platform.database.transaction(async (tx) => {
    const { row, adopts, refused, request } = await prepare(tx, call, id, await call.lock(tx, id), lookup)
    const attempt = { kind: call.kind, subjectId: id, amount: call.amount(row), request, lookUpFirst: true }
    const [attemptId = ''] = await queueAttempts(platform, tx, [attempt])
    const subject = subjectOf(call.kind, id)
    for (const kind of call.flagKinds) await closeFlag(platform, tx, { kind, ...subject }, call.flagNote)
    const formerRequest: Request = refused ? JSON.parse(refused.request) : {}
    await recordAudit(platform, tx, {
      actor,
      action: call.action,
      ...subject,
      reason,
      before: {
        attempt_id: refused?.id ?? null,
        refused_because: refused?.detail ?? null,
        ...audited(call.kind, formerRequest),
      },
      after: {
        attempt_id: attemptId,
        ...audited(call.kind, request),
        [`${call.kind}_at_the_processor`]: adopts,
      },
    })
    return { row, attemptId, adopts, request, formerRequest }
  })
}

/** The part of a request that the audit row shows: an invoice's holds the merchant's name and address. */
function audited(kind: AttemptKind, { destination_id = null }: Request) {
  return kind === 'payout' ? { destination_id } : {}
}

async function prepare<Row>(
  db: Queries,
  call: RetryableCall<Row>,
  id: string,
  row: Row | undefined,
  lookup: LookupOutcome | null,
) {
  call.assertWaiting(row)
  const attempts = await listAttempts(db, call.kind, id)
  const states = attempts.map(attemptState)
  const decision = decideRetry({ attempts: states, amount: call.amount(row), lookup })
  if (decision.kind === 'refused') throw new Refusal(decision.code, decision.detail)
  return { row, adopts: decision.adopts, refused: attempts.at(-1), request: await call.request(db, row) }
}
