import { formatMoney, type Paisa } from '../../shared/money.ts'
import { payoutCreated } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { recordAudit } from '../moderation/audit.service.ts'
import { openFlags, raiseFlag, resolvedFlagTimes } from '../moderation/flags.service.ts'
import { afterCommit, LostRace, type Queries, type Tx } from '../platform/database.ts'
import { eachOnItsOwn } from '../platform/each-on-its-own.ts'
import type { Platform } from '../platform/platform.ts'
import { newsOf } from '../platform/signals.ts'
import { queueAttempt } from '../processor/attempts.service.ts'
import type { Processor } from '../processor/port.ts'
import { hasFailed } from '../processor/record-word.rule.ts'
import {
  destinationProblem,
  destinationsInForce,
  flagBrokenDestination,
} from '../users/payout-destinations.service.ts'
import { displayNamesOf, isSuspended } from '../users/users.service.ts'
import {
  decidePayout,
  type FailureWord,
  type PayoutFacts,
  type PayoutWait,
} from './payout-eligibility.rule.ts'
import {
  failedBehindPayableShares,
  failuresSinceLastPaid,
  findPayoutParts,
  findPayouts,
  insertPayout,
  lockPayableShares,
  type PayoutFilter,
  type PayoutRow,
  releasedByCreator,
  takeShares,
} from './payouts.store.ts'

export type { PayoutRow } from './payouts.store.ts'

/** What a payout run did, or with a dry run would do, for one creator. */
export type PayoutRunOutcome =
  | { creatorId: string; kind: 'paid_out'; payoutId: string | null; amount: Paisa }
  | { creatorId: string; kind: 'waits'; why: PayoutWait; amount: Paisa }

/**
 * Makes a payout of each creator's whole released balance where the rule allows one. Each creator has a transaction
 * of their own, so a run can be interrupted and made again; one that fails keeps nobody else waiting, and its error is
 * thrown at the end. With `dryRun` nothing is written. With an `actor` each payout gets an audit row; the schedule has
 * none.
 */
export async function runPayouts(
  platform: Platform,
  processor: Processor,
  options: { dryRun?: boolean; actor?: string; progress?: (at: number, all: number) => void } = {},
): Promise<PayoutRunOutcome[]> {
  const creators = await releasedByCreator(platform.database.reader)
  type Creator = (typeof creators)[number]
  const work = async ({ creator_id: creatorId, released }: Creator): Promise<PayoutRunOutcome | null> => {
    const facts = await gatherCheckedFacts(platform, platform.database.reader, creatorId, released)
    const lookup = await lookUpReplaced(processor, facts)
    if (options.dryRun) return preview(creatorId, facts, lookup)
    return platform.database.transaction(async (tx) => {
      const outcome = await payOne(platform, tx, creatorId, lookup)
      if (options.actor !== undefined) await noteRun(platform, tx, options.actor, outcome)
      return outcome
    })
  }
  return eachOnItsOwn(platform, creators, work, options.progress)
}

async function noteRun(
  platform: Platform,
  tx: Tx,
  actor: string,
  outcome: PayoutRunOutcome | null,
): Promise<void> {
  if (outcome?.kind !== 'paid_out' || outcome.payoutId === null) return
  const { creatorId, payoutId, amount } = outcome
  await recordAudit(platform, tx, {
    actor,
    action: 'payout.run',
    subjectType: 'payout',
    subjectId: payoutId,
    reason: null,
    before: { creator_id: creatorId, released: amount },
    after: { creator_id: creatorId, released: 0, amount },
  })
}

interface GatheredFacts extends PayoutFacts {
  destinationId: string | null
  /** The failed payouts whose money is in the released balance again. */
  replaces: string[]
  lastFailed: PayoutRow | null
  /** Whether the last run stopped because the processor did not confirm a failure, and nobody has looked yet. */
  unconfirmedFailureFlag: boolean
  /** What is wrong with a destination of the creator's; `null` when nothing is, or it was not looked at. */
  integrityProblem: string | null
}

const UNCONFIRMED: PayoutWait = 'failure_not_confirmed'

async function gatherFacts(
  platform: Platform,
  db: Queries,
  creatorId: string,
  released: Paisa,
): Promise<GatheredFacts> {
  const now = platform.clock.now()
  const destination = (await destinationsInForce(db, [creatorId], now)).get(creatorId) ?? null
  const resolved = await resolvedFlagTimes(db, 'payout_failed_repeatedly', [creatorId])
  const countFrom = Math.max(resolved.get(creatorId) ?? 0, destination?.effectiveAt ?? 0)
  const failures = await failuresSinceLastPaid(db, creatorId)
  const [flag] = await openFlags(db, 'payout_failed_repeatedly', creatorId)
  return {
    released,
    threshold: platform.config.PAYOUT_THRESHOLD,
    suspended: (await isSuspended(db, [creatorId])).has(creatorId),
    hasDestination: destination !== null,
    // Until a run looks at the destinations themselves, what counts is the flag that the last one raised.
    destinationBroken: (await openFlags(db, 'integrity_violation', creatorId)).length > 0,
    integrityProblem: null,
    destinationId: destination?.id ?? null,
    failedInRow: failures.filter((payout) => payout.created_at >= countFrom).length,
    replaces: await failedBehindPayableShares(db, creatorId),
    lastFailed: failures[0] ?? null,
    lastFailure: 'confirmed',
    openFailureFlag: flag !== undefined,
    unconfirmedFailureFlag: flag !== undefined && JSON.parse(flag.evidence).why === UNCONFIRMED,
  }
}

/** The same for a run that pays: whether the creator's destinations are as they were written is looked at now. */
async function gatherCheckedFacts(
  platform: Platform,
  db: Queries,
  creatorId: string,
  released: Paisa,
): Promise<GatheredFacts> {
  const facts = await gatherFacts(platform, db, creatorId, released)
  const integrityProblem = await destinationProblem(platform, db, creatorId)
  return { ...facts, destinationBroken: integrityProblem !== null, integrityProblem }
}

/** What the next run would make of one creator's released balance. */
export interface NextPayout {
  /** The whole released balance, paisa. */
  amount: Paisa
  threshold: Paisa
  /** `null`: the run pays, if the processor can be asked where it must be. */
  waitsFor: Exclude<PayoutWait, 'processor_unavailable'> | null
  /** The run asks the processor first, about the failed payouts that this one would replace. */
  replacesFailed: boolean
}

/**
 * The rule's answer as things stand, without asking the processor: of a failed payout that it did not confirm, what counts is
 * the flag that the last run raised.
 */
export async function nextPayout(platform: Platform, creatorId: string): Promise<NextPayout> {
  const { reader } = platform.database
  const [balance] = await releasedByCreator(reader, creatorId)
  const facts = await gatherFacts(platform, reader, creatorId, balance?.released ?? 0)
  const decision = decidePayout({
    ...facts,
    lastFailure: facts.unconfirmedFailureFlag ? 'denied' : 'confirmed',
  })
  return {
    amount: facts.released,
    threshold: facts.threshold,
    waitsFor: decision.kind === 'wait' && decision.why !== 'processor_unavailable' ? decision.why : null,
    replacesFailed: facts.replaces.length > 0,
  }
}

interface Lookup {
  /** The failed payouts that the processor was asked about. */
  asked: string[]
  word: FailureWord
}

/**
 * Asks the processor about each failed payout that a new one would replace: it must agree that it failed, or never
 * have known it. The look-up is made only where it can change the decision. One that is denied outweighs others that
 * cannot be asked about.
 */
async function lookUpReplaced(processor: Processor, facts: GatheredFacts): Promise<Lookup> {
  if (decidePayout(facts).kind !== 'pay') return { asked: [], word: 'confirmed' }
  let word: FailureWord = 'confirmed'
  for (const payoutId of facts.replaces) {
    const found = await processor.findPayouts(payoutId)
    if (found.kind === 'unavailable') word = 'unknown'
    else if (!found.items.every(hasFailed)) {
      return { asked: facts.replaces, word: 'denied' }
    }
  }
  return { asked: facts.replaces, word }
}

function preview(creatorId: string, facts: GatheredFacts, lookup: Lookup): PayoutRunOutcome {
  const decision = decidePayout({ ...facts, lastFailure: lookup.word })
  return decision.kind === 'pay'
    ? { creatorId, kind: 'paid_out', payoutId: null, amount: decision.amount }
    : { creatorId, kind: 'waits', why: decision.why, amount: facts.released }
}

async function payOne(
  platform: Platform,
  tx: Tx,
  creatorId: string,
  lookup: Lookup,
): Promise<PayoutRunOutcome | null> {
  const shares = await lockPayableShares(tx, platform.database.dialect, creatorId)
  const released = shares.reduce((sum, share) => sum + share.commission, 0)
  if (released === 0) return null
  const facts = await gatherCheckedFacts(platform, tx, creatorId, released)
  const decision = decidePayout({ ...facts, lastFailure: lookup.word })
  // Another payout failed since the processor was asked: the next run asks about that one too.
  if (decision.kind === 'pay' && facts.replaces.some((id) => !lookup.asked.includes(id))) return null
  if (decision.kind === 'wait') {
    if (decision.raiseFlag) {
      if (facts.integrityProblem !== null) {
        await flagBrokenDestination(platform, tx, creatorId, { problem: facts.integrityProblem })
      } else await flagFailures(platform, tx, creatorId, facts, decision.why)
    }
    return { creatorId, kind: 'waits', why: decision.why, amount: released }
  }
  const now = platform.clock.now()
  const payout: PayoutRow = {
    id: platform.ids.next(),
    creator_id: creatorId,
    state: 'pending',
    amount: decision.amount,
    processor_payout_id: null,
    failure_reason: null,
    created_at: now,
    submitted_at: null,
    settled_at: null,
  }
  await insertPayout(tx, payout, shares)
  const taken = await takeShares(
    tx,
    creatorId,
    shares.map((share) => share.billing_cycle_id),
    payout.id,
  )
  if (taken !== shares.length) throw new LostRace('a share is in another payout')
  await writeEntries(
    platform,
    tx,
    [payoutCreated({ payoutId: payout.id, creatorId, amount: payout.amount })],
    now,
  )
  await queueAttempt(platform, tx, {
    kind: 'payout',
    subjectId: payout.id,
    amount: payout.amount,
    request: { destination_id: facts.destinationId },
  })
  afterCommit(tx, () => {
    for (const party of new Set([creatorId, ...shares.map((share) => share.merchant_id)])) {
      platform.signals.send(newsOf(party))
    }
  })
  return { creatorId, kind: 'paid_out', payoutId: payout.id, amount: payout.amount }
}

async function flagFailures(
  platform: Platform,
  tx: Tx,
  creatorId: string,
  facts: GatheredFacts,
  why: PayoutWait,
): Promise<void> {
  await raiseFlag(platform, tx, {
    kind: 'payout_failed_repeatedly',
    subjectType: 'user',
    subjectId: creatorId,
    summary:
      why === 'failed_three_times'
        ? `${facts.failedInRow} payouts to this creator failed one after the other; the next waits for a person.`
        : 'The processor does not confirm that the last payout failed; a new one waits for a person.',
    evidence: {
      why,
      released: formatMoney(facts.released),
      failed_in_a_row: facts.failedInRow,
      last_failed_payout: facts.lastFailed?.id ?? null,
      replaces: facts.replaces,
      last_failure_reason: facts.lastFailed?.failure_reason ?? null,
    },
  })
}

/** A creator's payouts, or all for the operator (`creatorId` null), newest first. */
export function listPayouts(
  platform: Platform,
  creatorId: string | null,
  filter: PayoutFilter,
): Promise<PayoutRow[]> {
  return findPayouts(platform.database.reader, creatorId, filter)
}

export interface PayoutPart extends PayoutRow {
  /** What of the payout came from the merchant's cycles, paisa. */
  part: Paisa
  creatorName: string
}

/** The payouts that carry money of one merchant's cycles, newest first. */
export async function listPayoutParts(
  platform: Platform,
  merchantId: string,
  filter: PayoutFilter,
): Promise<PayoutPart[]> {
  const db = platform.database.reader
  const rows = await findPayoutParts(db, merchantId, filter)
  const names = await displayNamesOf(
    db,
    rows.map((row) => row.creator_id),
  )
  return rows.map((row) => ({ ...row, creatorName: names.get(row.creator_id) ?? '' }))
}
