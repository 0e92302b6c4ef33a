import { CURRENCY, formatMoney } from '../../shared/money.ts'
import {
  assertInvoiceBacked,
  hasInvoiceAccount,
  invoiceAccount,
  isCycleCharged,
} from '../billing/invoice-checks.service.ts'
import { recordInvoice } from '../billing/invoices.service.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import { flagForgedRows } from '../flags/forged-rows.service.ts'
import { assertPayoutBacked, checkAccountTitle, isPayoutSettled } from '../payouts/payout-checks.service.ts'
import { recordSubmitted } from '../payouts/payout-events.service.ts'
import { getPayout } from '../payouts/payouts.service.ts'
import { IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Tx } from '../platform/database/database.ts'
import { requireAuthentic } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import {
  attemptState,
  type ClaimedAttempt,
  claimAttempts,
  defer,
  flagDisagreement,
  listAttempts,
  lookUpRecords,
  postpone,
  type Refusal,
  settleAttempt,
  settleRefused,
  subjectOf,
} from '../processor/attempts.service.ts'
import type { CallOutcome, Processor } from '../processor/processor.ts'
import { isFinalRefusal, itemsThatCount, LOOK_AGAIN_AFTER_MS } from '../processor/retry.rule.ts'
import { flagBrokenAccount, openDestination } from '../users/sealed-accounts.service.ts'
import { isSuspended } from '../users/users.service.ts'

const BATCH = 20
/** An attempt without tries that is older is looked up before its call, ms. */
const UNTRIED_MS = 600_000
/** Pause before a payout that cannot be sent yet is checked again, ms. */
const WAITING_DELAY_MS = 60_000
/** Pause before an invoice that waits for the merchant's billing account is checked again, ms. */
const MISSING_ACCOUNT_DELAY_MS = 600_000

/** An attempt that is due, and what its call needs. */
interface Call {
  platform: Platform
  processor: Processor
  attempt: ClaimedAttempt
}

/** Makes the due calls to the processor. Returns how many attempts it claimed. */
export async function makeDueCalls(platform: Platform, processor: Processor): Promise<number> {
  const attempts = await claimAttempts(platform, BATCH)
  const calls = await Promise.allSettled(
    attempts.map((attempt) => attemptCall({ platform, processor, attempt })),
  )
  const failed = calls.find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
  return attempts.length
}

const DUPLICATE_ID = 'the processor answered with the id of another invoice or payout'

/** A failure delays no other attempt. Whatever the call did is looked up before the next try. */
async function attemptCall(call: Call): Promise<void> {
  const { platform, attempt } = call
  try {
    await lookUpOrCall(call)
  } catch (error) {
    const fault = platform.database.faultOf(error)
    if (fault?.kind === 'unavailable') throw error
    platform.log.error({ err: error, attempt: attempt.id }, 'a call to the processor could not be recorded')
    await platform.database.transaction(async (tx) => {
      const detail = fault?.kind === 'unique' ? DUPLICATE_ID : String(error).replace(/\p{Cc}+/gu, ' ')
      if (fault?.kind === 'unique') await flagDisagreement(platform, tx, attempt, detail)
      await postpone(platform, tx, attempt, { detail: detail.slice(0, 300), mayHaveTakenEffect: true })
    })
  }
}

async function lookUpOrCall(call: Call): Promise<void> {
  const { platform, attempt } = call
  const { kind, subject_id: subjectId } = attempt
  const unbacked = await problemWith(call)
  if (unbacked) return recordUnsent(call, unbacked)
  // An earlier try may have taken effect without an answer: look it up before a call with the same key.
  if (attempt.tries > 0 && (await isFoundThere(call))) return
  // The processor's event can overtake its answer. A look-up will find what it is about.
  const isSettled = kind === 'payout' ? isPayoutSettled : isCycleCharged
  if (await isSettled(platform, subjectId))
    return recordOutcome(call, { kind: 'retry', detail: 'the journal has its outcome already' })
  const prepared = await (kind === 'invoice' ? invoiceCall : payoutCall)(call)
  if (prepared.kind === 'retry') return recordOutcome(call, prepared)
  if (prepared.kind !== 'ready') return recordUnsent(call, prepared)
  // The first call of an attempt that has waited is looked up too: a database writer can reset the count of tries, and a processor
  // recognizes a key for some time only.
  const isOld = platform.clock.now() - attempt.created_at > UNTRIED_MS
  if (attempt.tries === 0 && isOld && (await isFoundThere(call))) return
  return recordOutcome(call, await prepared.make())
}

/** Why a call must not be made: it, or what it is about, is not what the service and its journal wrote. */
async function problemWith(call: Call): Promise<NotReady | null> {
  const { platform, attempt } = call
  const { kind, subject_id: subjectId, amount } = attempt
  let isForged = true
  try {
    requireAuthentic(platform.keys, 'processor_attempts', attempt)
    isForged = false
    if (kind === 'payout') await assertPayoutBacked(platform, subjectId, amount)
    else await assertInvoiceBacked(platform, subjectId, amount, customerOf(attempt).id)
    return null
  } catch (error) {
    if (error instanceof UnknownKeyError) return waitsForKey(call, `it was ${error.message}`)
    if (!(error instanceof IntegrityError)) throw error
    const problem = error.message
    return {
      kind: 'broken',
      problem,
      summary: `The ${kind} was not sent: someone writes to the database. ${problem}`,
      flag: (tx) =>
        isForged
          ? flagForgedRows(platform, tx, 'processor_attempts', [{ id: attempt.id, problem }])
          : raiseFlag(platform, tx, {
              kind: 'integrity_violation',
              ...subjectOf(kind, subjectId),
              summary: `The ${kind} does not agree with the journal and was not sent: someone writes to the database. Run "affiliate ledger verify --full".`,
              evidence: { attempt_id: attempt.id, problem },
            }),
    }
  }
}

function customerOf({ request }: ClaimedAttempt): { id: string; email: string; name: string } {
  return JSON.parse(request).customer
}

/** A call, or why it is not made now. */
type Prepared =
  | { kind: 'ready'; make(): Promise<CallOutcome> }
  | NotReady
  | Extract<CallOutcome, { kind: 'retry' }>

/** Why a call is not made now. `isOver`: the reason has ended meanwhile. `broken`: the account is no longer the right one; `flag` says whose was changed in the database. */
type NotReady =
  | { kind: 'waits'; why: string; delayMs: number; isOver?(tx: Tx): Promise<boolean> }
  | { kind: 'broken'; problem: string; summary: string; flag(tx: Tx): Promise<void> }

function commonOf({ id, subject_id, amount }: ClaimedAttempt) {
  return { attemptId: id, reference: subject_id, amount }
}

async function invoiceCall(call: Call): Promise<Prepared> {
  const { platform, processor, attempt } = call
  const invoice = { ...commonOf(attempt), customer: customerOf(attempt) }
  if (!processor.needsBillingAccount) return { kind: 'ready', make: () => processor.createInvoice(invoice) }
  const found = await invoiceAccount(platform, attempt.subject_id, attempt.created_at)
  switch (found.kind) {
    case 'ready': {
      const billingAccount = found.account
      return { kind: 'ready', make: () => processor.createInvoice({ ...invoice, billingAccount }) }
    }
    case 'missing': {
      const isOver = (tx: Tx) => hasInvoiceAccount(tx, found.merchantId)
      return { kind: 'waits', why: found.why, delayMs: MISSING_ACCOUNT_DELAY_MS, isOver }
    }
    case 'unreadable':
      return waitsForKey(call, found.why)
    default: {
      const { merchantId, problem } = found
      const evidence = { billing_cycle_id: attempt.subject_id, problem }
      return {
        kind: 'broken',
        problem,
        summary: "The invoice was not sent: the merchant's billing account was changed in the database.",
        flag: (tx) => flagBrokenAccount(platform, tx, 'billing_accounts', merchantId, evidence),
      }
    }
  }
}

function waitsForKey({ platform, attempt }: Call, why: string): NotReady {
  platform.log.error({ attempt: attempt.id }, why)
  return waits(why)
}

function waits(why: string): NotReady {
  return { kind: 'waits', why, delayMs: WAITING_DELAY_MS }
}

/** An unsent payout waits while its creator is suspended. */
async function payoutCall(call: Call): Promise<Prepared> {
  const { platform, processor, attempt } = call
  const payout = await getPayout(platform.database.reader, attempt.subject_id)
  if (!payout) throw new Error(`attempt ${attempt.id} has no payout`)
  const creatorId = payout.creator_id
  if ((await isSuspended(platform.database.reader, [creatorId])).size > 0)
    return waits('the creator is suspended')
  const { destination_id }: { destination_id: string } = JSON.parse(attempt.request)
  try {
    const destination = await openDestination(platform, creatorId, destination_id, payout.created_at)
    if (!destination) return waits('the payout destination has not come into effect')
    const account = { ...destination, id: destination_id }
    const verdict = await checkAccountTitle(platform, processor, payout, account)
    switch (verdict.kind) {
      case 'accepted':
        return { kind: 'ready', make: () => processor.createPayout({ ...commonOf(attempt), destination }) }
      case 'unavailable':
        return { kind: 'retry', detail: `the account title could not be checked: ${verdict.detail}` }
      case 'differs':
        return waits("the bank's account title differs: a person decides")
      case 'replaced': {
        const problem = "the bank's account title differs, and the creator has another account by now"
        const summary = `The payout was not sent: ${problem}. "affiliate payouts retry" sends it there.`
        return { kind: 'broken', problem, summary, flag: async () => {} }
      }
    }
  } catch (error) {
    if (error instanceof UnknownKeyError)
      return waitsForKey(call, `the payout destination was ${error.message}`)
    if (!(error instanceof IntegrityError)) throw error
    const problem = error.message
    const evidence = { payout_id: attempt.subject_id, problem }
    return {
      kind: 'broken',
      problem,
      summary: 'The payout was not sent: its destination was changed in the database.',
      flag: (tx) => flagBrokenAccount(platform, tx, 'payout_destinations', creatorId, evidence),
    }
  }
}

/**
 * No call was made. It is made later, or, where the account is not the one that its owner gave, a person decides about a new
 * attempt.
 */
function recordUnsent(call: Call, unsent: NotReady): Promise<void> {
  const { platform, attempt } = call
  return platform.database.transaction(async (tx) => {
    if (unsent.kind === 'waits') {
      const delayMs = (await unsent.isOver?.(tx)) ? 0 : unsent.delayMs
      return defer(platform, tx, attempt, unsent.why, delayMs)
    }
    await unsent.flag(tx)
    const { problem, summary } = unsent
    await recordRefusal(call, tx, { detail: `not sent: ${problem}`, summary })
  })
}

/** Looks the call up and records what the processor holds; false when it holds nothing. */
async function isFoundThere(call: Call): Promise<boolean> {
  const { platform, processor, attempt } = call
  const { reader } = platform.database
  const found = await lookUpRecords(reader, processor, attempt.kind, attempt.subject_id)
  if (found.kind === 'unavailable') {
    await postponeFound(call, found.detail)
    return true
  }
  const attempts = await listAttempts(reader, attempt.kind, attempt.subject_id)
  const items = itemsThatCount(found.items, attempts.map(attemptState))
  const [item, ...others] = items
  if (!item) return false
  const held = `${formatMoney(item.amount)} ${item.currency}`
  if (others.length > 0)
    await postponeFound(call, `the processor holds ${items.length} under one reference`, true)
  else if (item.amount !== attempt.amount || item.currency !== CURRENCY)
    await postponeFound(call, `the processor holds another amount: ${held}`, true)
  else await recordOutcome(call, { kind: 'created', id: item.id, hostedUrl: item.hosted_url ?? null })
  return true
}

async function postponeFound({ platform, attempt }: Call, detail: string, disagrees = false): Promise<void> {
  await platform.database.transaction(async (tx) => {
    if (disagrees) await flagDisagreement(platform, tx, attempt, detail)
    await postpone(platform, tx, attempt, { detail, mayHaveTakenEffect: false })
  })
}

async function recordOutcome(call: Call, outcome: CallOutcome): Promise<void> {
  const { platform, attempt } = call
  await platform.database.transaction(async (tx) => {
    if (outcome.kind === 'refused') {
      const detail = `${outcome.status} ${outcome.detail}`
      const summary = `The processor refused the ${attempt.kind}: ${detail}`
      return recordRefusal(call, tx, { detail, summary, processorId: outcome.id })
    }
    if (outcome.kind !== 'created') {
      const { detail, retryAfterMs: leastDelayMs } = outcome
      const mayHaveTakenEffect = outcome.kind === 'unknown'
      return postpone(platform, tx, attempt, { detail, leastDelayMs, mayHaveTakenEffect })
    }
    const change = { state: 'created', processor_id: outcome.id, detail: null } as const
    if (!(await settleAttempt(platform, tx, attempt, change))) return
    if (attempt.kind === 'invoice') return recordInvoice(platform, tx, attempt.subject_id, outcome)
    return recordSubmitted(platform, tx, attempt.subject_id, outcome.id)
  })
}

/** A refusal that may be the effect of an earlier call is looked up again before it counts as final. */
function recordRefusal({ platform, attempt }: Call, tx: Tx, refusal: Refusal): Promise<void> {
  if (isFinalRefusal(attempt.unknown_at, platform.clock.now())) {
    return settleRefused(platform, tx, attempt, refusal)
  }
  return postpone(platform, tx, attempt, {
    detail: `${refusal.detail} (looked up again, because an earlier call had no answer)`,
    leastDelayMs: LOOK_AGAIN_AFTER_MS,
    mayHaveTakenEffect: false,
  })
}
