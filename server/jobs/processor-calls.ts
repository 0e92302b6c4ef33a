import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { recordInvoice } from '../billing/invoices.service.ts'
import { recordSubmitted } from '../payouts/payout-events.service.ts'
import { getPayout } from '../payouts/payouts.service.ts'
import { IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import {
  type ClaimedAttempt,
  claimAttempts,
  defer,
  flagDisagreement,
  listAttempts,
  postpone,
  settleCreated,
  settleRefused,
} from '../processor/attempts.service.ts'
import { isFinalRefusal, LOOK_AGAIN_AFTER_MS } from '../processor/final-refusal.rule.ts'
import type { CallOutcome, LookupItem, Processor } from '../processor/processor.ts'
import { itemsThatCount } from '../processor/retry.rule.ts'
import {
  flagBrokenDestination,
  openDestination,
  type PayoutAccount,
} from '../users/payout-destinations.service.ts'
import { isSuspended } from '../users/users.service.ts'

const ATTEMPTS_AT_ONCE = 20
/** How often a payout that cannot be sent yet is looked at again, ms. */
const WAITING_DELAY_MS = 60_000

/** Makes the calls to the processor that are due. Answers how many attempts it took up. */
export async function makeDueCalls(platform: Platform, processor: Processor): Promise<number> {
  const attempts = await claimAttempts(platform, ATTEMPTS_AT_ONCE)
  const sent = await Promise.allSettled(attempts.map((attempt) => sendAttempt(platform, processor, attempt)))
  const failed = sent.find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
  return attempts.length
}

/** One that fails holds up no other; whatever it had led to is looked up before the next try. */
async function sendAttempt(platform: Platform, processor: Processor, attempt: ClaimedAttempt): Promise<void> {
  try {
    await trySending(platform, processor, attempt)
  } catch (error) {
    const fault = platform.database.faultOf(error)
    if (fault?.kind === 'unavailable') throw error
    platform.log.error({ err: error, attempt: attempt.id }, 'a call to the processor could not be recorded')
    await platform.database.transaction(async (tx) => {
      const detail = fault?.kind === 'unique' ? DOUBLE_ID : String(error).replace(/\p{Cc}+/gu, ' ')
      if (fault?.kind === 'unique') await flagDisagreement(platform, tx, attempt, detail)
      await postpone(platform, tx, attempt, { detail: detail.slice(0, 300), mayHaveTakenEffect: true })
    })
  }
}

const DOUBLE_ID = 'it gave us an id that stands for another invoice or payout already'

async function trySending(platform: Platform, processor: Processor, attempt: ClaimedAttempt): Promise<void> {
  if (attempt.earlierTries > 0) {
    // An earlier try may have taken effect without our hearing of it: ask before calling again with the same key.
    const known = await lookUp(platform, processor, attempt)
    if (known !== 'unknown_there') return recordLookup(platform, attempt, known)
  }
  const common = { attemptId: attempt.id, reference: attempt.subjectId, amount: attempt.amount }
  if (attempt.kind === 'invoice') {
    const { customer } = attempt.request as { customer: { id: string; email: string; name: string } }
    return recordOutcome(platform, attempt, await processor.createInvoice({ ...common, customer }))
  }
  const ready = await payoutDestination(platform, attempt)
  if (ready.kind === 'waits') {
    return platform.database.transaction((tx) => defer(platform, tx, attempt, ready.why, WAITING_DELAY_MS))
  }
  if (ready.kind === 'broken') return recordBroken(platform, attempt, ready)
  const { destination } = ready
  return recordOutcome(platform, attempt, await processor.createPayout({ ...common, destination }))
}

type ReadyPayout =
  | { kind: 'ready'; destination: PayoutAccount }
  | { kind: 'waits'; why: string }
  | { kind: 'broken'; creatorId: string; problem: string }

/**
 * Where a payout goes, or why it is not sent now. What has not been sent yet waits while its creator is suspended; what
 * has been sent runs on.
 */
async function payoutDestination(platform: Platform, attempt: ClaimedAttempt): Promise<ReadyPayout> {
  const payout = await getPayout(platform, attempt.subjectId)
  if (!payout) throw new Error(`attempt ${attempt.id} is for no payout`)
  const creatorId = payout.creator_id
  if ((await isSuspended(platform.database.reader, [creatorId])).size > 0) {
    return { kind: 'waits', why: 'the creator is suspended' }
  }
  const { destination_id } = attempt.request as { destination_id: string }
  try {
    const destination = await openDestination(platform, creatorId, destination_id, payout.created_at)
    if (destination) return { kind: 'ready', destination }
    return { kind: 'waits', why: 'the payout destination has not come into effect' }
  } catch (error) {
    if (error instanceof UnknownKeyError) {
      const why = `the payout destination was ${error.message}`
      platform.log.error({ attempt: attempt.id }, why)
      return { kind: 'waits', why }
    }
    if (error instanceof IntegrityError) return { kind: 'broken', creatorId, problem: error.message }
    throw error
  }
}

/** The call was not made: the destination is not what its creator gave. A new attempt is up to a person. */
function recordBroken(
  platform: Platform,
  attempt: ClaimedAttempt,
  { creatorId, problem }: { creatorId: string; problem: string },
): Promise<void> {
  return platform.database.transaction(async (tx) => {
    await flagBrokenDestination(platform, tx, creatorId, { payout_id: attempt.subjectId, problem })
    await recordRefusal(platform, tx, attempt, {
      detail: `not sent: ${problem}`,
      summary: 'The payout was not sent: its destination was changed in the database.',
    })
  })
}

type Known = LookupItem | 'unknown_there' | { unclear: string } | { disagrees: string }

async function lookUp(platform: Platform, processor: Processor, attempt: ClaimedAttempt): Promise<Known> {
  const found =
    attempt.kind === 'invoice'
      ? await processor.findInvoices(attempt.subjectId)
      : await processor.findPayouts(attempt.subjectId)
  if (found.kind === 'unavailable') return { unclear: found.detail }
  const attempts = await listAttempts(platform.database.reader, attempt.kind, attempt.subjectId)
  const items = itemsThatCount(
    found.items.filter((item) => item.reference === attempt.subjectId),
    attempts.map((one) => one.state),
  )
  const [item, ...others] = items
  if (!item) return 'unknown_there'
  if (others.length > 0) return { disagrees: `the processor holds ${items.length} under one reference` }
  if (item.amount !== attempt.amount || item.currency !== CURRENCY) {
    return { disagrees: `the processor holds another amount: ${formatMoney(item.amount)} ${item.currency}` }
  }
  return item
}

function recordLookup(
  platform: Platform,
  attempt: ClaimedAttempt,
  known: Exclude<Known, 'unknown_there'>,
): Promise<void> {
  if ('unclear' in known) {
    const postponement = { detail: known.unclear, mayHaveTakenEffect: false }
    return platform.database.transaction((tx) => postpone(platform, tx, attempt, postponement))
  }
  if ('disagrees' in known) {
    return platform.database.transaction(async (tx) => {
      await flagDisagreement(platform, tx, attempt, known.disagrees)
      await postpone(platform, tx, attempt, { detail: known.disagrees, mayHaveTakenEffect: false })
    })
  }
  return recordOutcome(platform, attempt, {
    kind: 'created',
    id: known.id,
    hostedUrl: known.hosted_url ?? null,
  })
}

async function recordOutcome(
  platform: Platform,
  attempt: ClaimedAttempt,
  outcome: CallOutcome,
): Promise<void> {
  await platform.database.transaction(async (tx) => {
    if (outcome.kind === 'refused') {
      const detail = `${outcome.status} ${outcome.detail}`
      const summary = `The processor refused the ${attempt.kind}: ${detail}`
      return recordRefusal(platform, tx, attempt, { detail, summary })
    }
    if (outcome.kind !== 'created') {
      const { detail, retryAfterMs: leastDelayMs } = outcome
      const mayHaveTakenEffect = outcome.kind === 'unknown'
      return postpone(platform, tx, attempt, { detail, leastDelayMs, mayHaveTakenEffect })
    }
    if (!(await settleCreated(platform, tx, attempt, outcome.id))) return
    if (attempt.kind === 'invoice') return recordInvoice(tx, attempt.subjectId, outcome)
    return recordSubmitted(platform, tx, attempt.subjectId, outcome.id)
  })
}

/** A refusal that may be no more than what became of an earlier call is looked into before anybody takes it for final. */
function recordRefusal(
  platform: Platform,
  tx: Tx,
  attempt: ClaimedAttempt,
  refusal: { detail: string; summary: string },
): Promise<void> {
  if (isFinalRefusal({ unknownAt: attempt.unknownAt, at: platform.clock.now() })) {
    return settleRefused(platform, tx, attempt, refusal)
  }
  return postpone(platform, tx, attempt, {
    detail: `${refusal.detail} (looked up again, since no answer came to an earlier call)`,
    leastDelayMs: LOOK_AGAIN_AFTER_MS,
    mayHaveTakenEffect: false,
  })
}
