import type { Paisa } from '../../shared/money.ts'
import { lastResolvedFlag, openFlagAbout, raiseFlag } from '../flags/flags.service.ts'
import { assertEntry, checkedEntry } from '../ledger/checked-entry.service.ts'
import { payoutCreated } from '../ledger/entries.rule.ts'
import { IntegrityError } from '../platform/crypto/vault.ts'
import type { Platform } from '../platform/platform.ts'
import { wasSentWith } from '../processor/attempts.service.ts'
import type { Processor } from '../processor/processor.ts'
import { last4Of } from '../users/bank-accounts.rule.ts'
import { destinationsInForce, type PayoutAccount } from '../users/sealed-accounts.service.ts'
import { isSameTitle } from './payout-eligibility.rule.ts'
import { findPayout, linesOf, type PayoutRow, paidPayoutIds, payoutsOfShare } from './payouts.store.ts'

/**
 * Checks a payout before it is sent: the journal created it with this amount, and released each of its lines to its creator when a cycle was
 * charged, and no other payout has carried them. Throws `IntegrityError` when it was added or changed outside of the service, and
 * `UnknownKeyError`.
 */
export async function assertPayoutBacked(
  { keys, database: { reader: db } }: Platform,
  payoutId: string,
  amount: Paisa,
): Promise<void> {
  const payout = await findPayout(db, payoutId)
  if (!payout) throw new IntegrityError('there is no such payout')
  const { creator_id: creatorId, created_at: createdAt } = payout
  await assertEntry(keys, db, payoutCreated({ payoutId, creatorId, amount: payout.amount }), createdAt)
  if (payout.amount !== amount) throw new IntegrityError('the call is about another amount')
  const lines = await linesOf(db, payoutId)
  if (lines.reduce((sum, line) => sum + line.amount, 0) !== amount)
    throw new IntegrityError('its lines make another amount')
  for (const { billing_cycle_id: cycleId } of lines) {
    const charged = await checkedEntry(keys, db, 'cycle_charged', cycleId)
    let free = releasedTo(creatorId, charged?.legs ?? '')
    for (const { id, state, part } of await payoutsOfShare(db, cycleId, creatorId)) {
      // One counts as failed only if the journal says so.
      const hasFailed = state === 'failed' && (await checkedEntry(keys, db, 'payout_failed', id)) !== null
      if (!hasFailed) free -= part
    }
    if (free < 0) throw new IntegrityError(`it carries more of cycle ${cycleId} than the journal released`)
  }
}

/** What the legs of an entry release to a creator, paisa. */
function releasedTo(creatorId: string, legs: string): Paisa {
  return legs
    .split('\n')
    .map((leg) => leg.split(' '))
    .filter(([, account, owner]) => account === 'creator_released' && owner === creatorId)
    .reduce((sum, [, , , amount]) => sum - Number(amount), 0)
}

/** Whether the journal has an outcome of this payout: then it must not be sent, whatever its row says. */
export async function isPayoutSettled({ keys, database }: Platform, payoutId: string): Promise<boolean> {
  for (const kind of ['payout_confirmed', 'payout_failed'] as const) {
    if ((await checkedEntry(keys, database.reader, kind, payoutId)) !== null) return true
  }
  return false
}

const KIND = 'account_title_differs'

/**
 * Whether a payout may go to its account. `differs`: the bank names another holder, and a person has not accepted that.
 * `replaced`: so it is, and the creator has another destination by now, to which a new attempt can go.
 */
export type TitleVerdict =
  | { kind: 'accepted' }
  | { kind: 'differs' }
  | { kind: 'replaced' }
  | { kind: 'unavailable'; detail: string }

/**
 * Compares the title that the creator gave with the bank's, before the first payout to a destination. A difference is flagged, and the
 * payout waits until a person resolves the flag. Processors that cannot be asked accept every title.
 */
export async function checkAccountTitle(
  platform: Platform,
  processor: Processor,
  payout: PayoutRow,
  destination: PayoutAccount & { id: string },
): Promise<TitleVerdict> {
  if (!processor.accountTitle) return { kind: 'accepted' }
  const { reader } = platform.database
  const request = { destination_id: destination.id }
  const paid = await paidPayoutIds(reader, payout.creator_id)
  if (await wasSentWith(platform.keys, reader, 'payout', request, paid)) return { kind: 'accepted' }
  const isAboutIt = (flag: { evidence: string } | undefined) =>
    flag !== undefined && JSON.parse(flag.evidence).destination_id === destination.id
  if (isAboutIt(await lastResolvedFlag(reader, KIND, payout.id))) return { kind: 'accepted' }
  const subject = { kind: KIND, subjectType: 'payout', subjectId: payout.id } as const
  if (!isAboutIt(await openFlagAbout(reader, subject))) {
    const found = await processor.accountTitle(destination.iban)
    if (found.kind === 'unavailable') return found
    if (isSameTitle(found.title, destination.account_title)) return { kind: 'accepted' }
    await platform.database.transaction((tx) =>
      raiseFlag(platform, tx, {
        ...subject,
        summary:
          "The bank's title of the payout account is not the one that the creator gave. The payout waits until this flag is resolved, or the creator gives another account.",
        evidence: {
          ...request,
          creator_id: payout.creator_id,
          given_title: destination.account_title,
          bank_title: found.title,
          iban_last4: last4Of(destination.iban),
        },
      }),
    )
  }
  const inForce = await destinationsInForce(reader, [payout.creator_id], platform.clock.now())
  return { kind: inForce.get(payout.creator_id)?.id === destination.id ? 'differs' : 'replaced' }
}
