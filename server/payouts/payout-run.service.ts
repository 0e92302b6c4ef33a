import { formatMoney, type Paisa } from '../../shared/money.ts'
import {
  lockPayableShares,
  moveShares,
  type PayableShare,
  releasedByCreator,
} from '../billing/creator-shares.service.ts'
import { recordAudit } from '../flags/audit.service.ts'
import {
  closeFlag,
  flagFailedRun,
  flaggedByRuns,
  type NewFlag,
  openFlags,
  raiseFlag,
  resolvedFlagTimes,
} from '../flags/flags.service.ts'
import { flagForgedRows } from '../flags/forged-rows.service.ts'
import { payoutCreated } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { forEachIsolated } from '../platform/database/batches.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import { lookUpRecords, queueAttempts } from '../processor/attempts.service.ts'
import type { Processor } from '../processor/processor.ts'
import { PAYOUT_UNITS } from '../processor/processor.ts'
import { hasFailed } from '../processor/records.rule.ts'
import {
  destinationProblem,
  destinationsInForce,
  flagBrokenAccount,
  missingDestinations,
} from '../users/sealed-accounts.service.ts'
import { isSuspended } from '../users/users.service.ts'
import {
  cutShares,
  decidePayout,
  type FailureVerdict,
  type PayoutDecision,
  type PayoutFacts,
  type PayoutWait,
} from './payout-eligibility.rule.ts'
import {
  failedBehindPayableShares,
  failuresSinceLastPaid,
  insertPayout,
  type PayoutRow,
  unsentAmount,
} from './payouts.store.ts'

/** What a payout run did for one creator, or with `dryRun` would do. */
export type PayoutRunOutcome =
  | { creatorId: string; kind: 'paid_out'; payoutId: string | null; amount: Paisa; released: Paisa }
  | { creatorId: string; kind: 'waits'; why: PayoutWait; amount: Paisa }
  /** Nothing was done, and the creator is flagged. */
  | { creatorId: string; kind: 'failed'; amount: Paisa }

/**
 * Creates a payout of each creator's whole released balance, in units of the processor, where the rule allows one. Each creator has a
 * transaction of their own, so a run can be interrupted and repeated. An error for one creator is flagged and does not stop the others. With `dryRun` nothing is written. With an `actor` each payout gets an audit row; scheduled runs have none.
 */
export async function runPayouts(
  platform: Platform,
  processor: Processor,
  options: { dryRun?: boolean; actor?: string; progress?: (at: number, all: number) => void } = {},
): Promise<PayoutRunOutcome[]> {
  const { dryRun = false, actor, progress } = options
  const { reader } = platform.database
  const payees = (await releasedByCreator(reader)).map(({ creator_id: creatorId, released }) => ({
    creatorId,
    released,
    unit: processor.payoutUnit,
  }))
  const obstacle =
    (await checkDestinations(platform, dryRun)) ?? (await checkBalance(platform, processor, payees, dryRun))
  const flagged = await flaggedByRuns(reader)
  const work = async (payee: Payee): Promise<PayoutRunOutcome | null> => {
    const { creatorId, released } = payee
    const facts = await gatherCheckedFacts(platform, reader, payee)
    const decision = decidePayout(facts)
    if (obstacle !== null && decision.kind === 'pay') {
      return { creatorId, kind: 'waits', why: obstacle, amount: released }
    }
    const lookup = await lookUpReplaced(platform, processor, facts, decision)
    if (dryRun) return outcomeOf(payee, decidePayout({ ...facts, ...lookup }), null)
    return platform.database.transaction(async (tx) => {
      const outcome = await payCreator(platform, tx, payee, lookup)
      if (flagged.has(creatorId)) {
        const failure = { kind: 'run_failed', subjectType: 'user', subjectId: creatorId } as const
        await closeFlag(platform, tx, failure, 'A later run did it.')
      }
      if (actor !== undefined) await auditPayout(platform, tx, actor, outcome)
      return outcome
    })
  }
  const onFailure = async ({ creatorId, released }: Payee, error: unknown) => {
    const subject = { subjectType: 'user', subjectId: creatorId } as const
    if (!dryRun) await flagFailedRun(platform, subject, 'payout run', error)
    return { creatorId, kind: 'failed' as const, amount: released }
  }
  return forEachIsolated(platform, payees, work, { progress, onFailure })
}

function outcomeOf(
  { creatorId, released }: Payee,
  decision: PayoutDecision,
  payoutId: string | null,
): PayoutRunOutcome {
  return decision.kind === 'pay'
    ? { creatorId, kind: 'paid_out', payoutId, amount: decision.amount, released }
    : { creatorId, kind: 'waits', why: decision.why, amount: released }
}

/** Whether destinations are missing, in which case a former one would seem to be in effect: nothing is sent, and it is flagged. */
async function checkDestinations(platform: Platform, dryRun: boolean): Promise<'destination_broken' | null> {
  const problem = await missingDestinations(platform, platform.database.reader)
  if (problem === null) return null
  if (!dryRun)
    await platform.database.transaction((tx) =>
      flagForgedRows(platform, tx, 'payout_destinations', [{ id: 'all', problem }]),
    )
  return 'destination_broken'
}

/**
 * Why nothing may be sent now, where the processor shows what payouts are made from: it does not answer, or holds less than this run and
 * the payouts that are not sent yet. Too little is flagged once, until a run finds enough.
 */
async function checkBalance(
  platform: Platform,
  processor: Processor,
  payees: readonly Payee[],
  dryRun: boolean,
): Promise<'processor_unavailable' | 'balance_too_low' | null> {
  const { reader } = platform.database
  if (!processor.balance) return null
  let planned = 0
  for (const payee of payees) {
    if (!Number.isSafeInteger(payee.released)) continue
    const decision = decidePayout(await gatherFacts(platform, reader, payee))
    if (decision.kind === 'pay') planned += decision.amount
  }
  if (planned === 0) return null
  const found = await processor.balance()
  if (found.kind === 'unavailable') {
    platform.log.warn({ detail: found.detail }, 'no payouts: the processor does not show its balance')
    return 'processor_unavailable'
  }
  const unsent = await unsentAmount(reader)
  const isEnough = planned + unsent <= found.amount
  const evidence = { planned: formatMoney(planned), unsent: formatMoney(unsent) }
  if (!dryRun) await flagBalance(platform, isEnough, { balance: formatMoney(found.amount), ...evidence })
  return isEnough ? null : 'balance_too_low'
}

async function flagBalance(platform: Platform, isEnough: boolean, evidence: NewFlag['evidence']) {
  const { PROCESSOR: subjectId } = platform.config
  const subject = { kind: 'processor_balance_low', subjectType: 'processor', subjectId } as const
  await platform.database.transaction<unknown>((tx) =>
    isEnough
      ? closeFlag(platform, tx, subject, 'The balance is enough for the payouts.')
      : raiseFlag(platform, tx, {
          ...subject,
          summary:
            'The balance at the processor is too low for the payouts that are due. No payouts are made until it is enough.',
          evidence,
        }),
  )
}

async function auditPayout(platform: Platform, tx: Tx, actor: string, outcome: PayoutRunOutcome | null) {
  if (outcome?.kind !== 'paid_out' || outcome.payoutId === null) return
  const { creatorId, payoutId, amount, released } = outcome
  await recordAudit(platform, tx, {
    actor,
    action: 'payout.run',
    subjectType: 'payout',
    subjectId: payoutId,
    before: { creator_id: creatorId, released },
    after: { creator_id: creatorId, released: released - amount, amount },
  })
}

/** Whose released balance it is about, and the unit of the processor, paisa. */
interface Payee {
  creatorId: string
  released: Paisa
  unit: Paisa
}

interface GatheredFacts extends PayoutFacts {
  creatorId: string
  destinationId: string | null
  /** The failed payouts whose money is in the released balance again. */
  replaces: string[]
  lastFailed: PayoutRow | null
  /** Whether the open flag says that the processor did not confirm a failure. */
  unconfirmedFailureFlag: boolean
  /** What is wrong with the creator's destinations; `null` when nothing is, or when they were not checked. */
  integrityProblem: string | null
}

const UNCONFIRMED: PayoutWait = 'failure_not_confirmed'

async function gatherFacts(
  platform: Platform,
  db: Queries,
  { creatorId, released, unit }: Payee,
): Promise<GatheredFacts> {
  const destinations = await destinationsInForce(db, [creatorId], platform.clock.now())
  const destination = destinations.get(creatorId) ?? null
  const resolved = await resolvedFlagTimes(db, 'payout_failed_repeatedly', [creatorId])
  const countFrom = Math.max(resolved.get(creatorId) ?? 0, destination?.effective_at ?? 0)
  const failures = await failuresSinceLastPaid(db, creatorId)
  const [flag] = await openFlags(db, 'payout_failed_repeatedly', creatorId)
  return {
    creatorId,
    released,
    threshold: platform.config.PAYOUT_THRESHOLD,
    unit,
    suspended: (await isSuspended(db, [creatorId])).has(creatorId),
    hasDestination: destination !== null,
    // Without a check of the destinations the open flag of the last run counts.
    destinationBroken: (await openFlags(db, 'integrity_violation', creatorId)).length > 0,
    integrityProblem: null,
    destinationId: destination?.id ?? null,
    failedInRow: failures.filter((payout) => payout.created_at >= countFrom).length,
    replaces: await failedBehindPayableShares(db, creatorId),
    lastFailed: failures[0] ?? null,
    failureVerdict: 'not_asked',
    openFailureFlag: flag !== undefined,
    unconfirmedFailureFlag: flag !== undefined && JSON.parse(flag.evidence).why === UNCONFIRMED,
  }
}

/** `gatherFacts`, and checks that the creator's destinations are as the service wrote them. */
async function gatherCheckedFacts(platform: Platform, db: Queries, payee: Payee): Promise<GatheredFacts> {
  const facts = await gatherFacts(platform, db, payee)
  const integrityProblem = await destinationProblem(platform, db, payee.creatorId)
  return { ...facts, destinationBroken: integrityProblem !== null, integrityProblem }
}

/**
 * What the next run would do with one creator's released balance by the rule, without asking the processor: the open flag of the last run
 * stands for its answer.
 */
export async function nextPayout(platform: Platform, creatorId: string) {
  const { reader } = platform.database
  const unit = PAYOUT_UNITS[platform.config.PROCESSOR]
  const [{ released } = { released: 0 }] = await releasedByCreator(reader, creatorId)
  const facts = await gatherFacts(platform, reader, { creatorId, released, unit })
  const failureVerdict = facts.unconfirmedFailureFlag ? 'denied' : 'not_asked'
  const decision = decidePayout({ ...facts, failureVerdict })
  return {
    /** The whole released balance, paisa. A processor that pays whole rupees leaves the rest. */
    amount: facts.released,
    threshold: facts.threshold,
    /** `null`: the run pays, provided that the processor answers where it must be asked. */
    waitsFor: decision.kind === 'wait' && decision.why !== 'processor_unavailable' ? decision.why : null,
    /** Whether the run first asks the processor about failed payouts that this one would replace. */
    replacesFailed: facts.replaces.length > 0,
  }
}

/** `asked`: the failed payouts that the processor was asked about. */
type Lookup = Pick<PayoutFacts, 'failureVerdict'> & { asked: string[] }

/**
 * Asks the processor about each failed payout that a new one would replace, if the answer can change the decision. `denied` for
 * one outweighs `unknown` for others.
 */
async function lookUpReplaced(
  { database }: Platform,
  processor: Processor,
  { replaces: asked }: GatheredFacts,
  decision: PayoutDecision,
): Promise<Lookup> {
  if (decision.kind !== 'pay') return { asked: [], failureVerdict: 'not_asked' }
  let failureVerdict: FailureVerdict = 'confirmed'
  for (const payoutId of asked) {
    const found = await lookUpRecords(database.reader, processor, 'payout', payoutId)
    if (found.kind === 'unavailable') failureVerdict = 'unknown'
    else if (!found.items.every(hasFailed)) return { asked, failureVerdict: 'denied' }
  }
  return { asked, failureVerdict }
}

async function payCreator(
  platform: Platform,
  tx: Tx,
  { creatorId, unit }: Payee,
  lookup: Lookup,
): Promise<PayoutRunOutcome | null> {
  const shares = await lockPayableShares(tx, creatorId)
  const released = shares.reduce((sum, share) => sum + share.free, 0)
  if (released === 0) return null
  const payee = { creatorId, released, unit }
  const facts = await gatherCheckedFacts(platform, tx, payee)
  const decision = decidePayout({ ...facts, ...lookup })
  if (decision.kind === 'pay') {
    // Another payout failed since the processor was asked: the next run asks about it too.
    if (facts.replaces.some((id) => !lookup.asked.includes(id))) return null
    const payoutId = await createPayout(platform, tx, facts, cutShares(shares, decision.amount))
    return outcomeOf(payee, decision, payoutId)
  }
  const { integrityProblem: problem } = facts
  if (decision.raiseFlag && problem !== null) {
    await flagBrokenAccount(platform, tx, 'payout_destinations', creatorId, { problem })
  } else if (decision.raiseFlag) await flagFailures(platform, tx, facts, decision.why)
  return outcomeOf(payee, decision, null)
}

/** Writes the payout with its lines and journal entry, and queues its call to the processor. */
async function createPayout(
  platform: Platform,
  tx: Tx,
  { creatorId, destinationId }: GatheredFacts,
  lines: readonly (PayableShare & { amount: Paisa })[],
): Promise<string> {
  const now = platform.clock.now()
  const payoutId = platform.ids.next()
  const amount = lines.reduce((sum, line) => sum + line.amount, 0)
  await insertPayout(tx, { id: payoutId, creator_id: creatorId, amount, created_at: now }, lines)
  await moveShares(tx, creatorId, lines, 'carried')
  await writeEntries(platform, tx, [payoutCreated({ payoutId, creatorId, amount })], now)
  const request = { destination_id: destinationId }
  await queueAttempts(platform, tx, [{ kind: 'payout', subjectId: payoutId, amount, request }])
  afterCommit(tx, () => {
    for (const party of new Set([creatorId, ...lines.map((line) => line.merchant_id)])) {
      platform.topics.send(userTopic(party))
    }
  })
  return payoutId
}

function flagFailures(platform: Platform, tx: Tx, facts: GatheredFacts, why: PayoutWait): Promise<void> {
  return raiseFlag(platform, tx, {
    kind: 'payout_failed_repeatedly',
    subjectType: 'user',
    subjectId: facts.creatorId,
    summary:
      why === 'failed_three_times'
        ? `${facts.failedInRow} payouts to this creator failed in a row. The next one waits for an operator.`
        : 'The processor does not confirm that the last payout failed. A new one waits for an operator.',
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
