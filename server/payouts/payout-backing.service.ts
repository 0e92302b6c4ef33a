import type { Paisa } from '../../shared/money.ts'
import { assertEntry, checkedEntry } from '../ledger/checked-entry.service.ts'
import { payoutCreated } from '../ledger/entries.rule.ts'
import { IntegrityError } from '../platform/crypto/vault.ts'
import type { Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { carriersOf, findPayout, linesOf } from './payouts.store.ts'

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
    const released = await releasedIn(keys, db, cycleId, creatorId)
    const carried = await carriedOf(keys, db, cycleId, creatorId)
    if (carried > released)
      throw new IntegrityError(`it carries more of cycle ${cycleId} than the journal released`)
  }
}

/** What the journal released to a creator when a cycle was charged, paisa. */
async function releasedIn(
  keys: Platform['keys'],
  db: Queries,
  cycleId: string,
  creatorId: string,
): Promise<Paisa> {
  const charged = await checkedEntry(keys, db, 'cycle_charged', cycleId)
  const legs = (charged?.legs ?? '').split('\n').map((leg) => leg.split(' '))
  return legs
    .filter(([, account, owner]) => account === 'creator_released' && owner === creatorId)
    .reduce((sum, [, , , amount]) => sum - Number(amount), 0)
}

/** What all payouts carry of a creator's share, paisa. One counts as failed only if the journal says so. */
async function carriedOf(
  keys: Platform['keys'],
  db: Queries,
  cycleId: string,
  creatorId: string,
): Promise<Paisa> {
  let carried = 0
  for (const { id, state, part } of await carriersOf(db, cycleId, creatorId)) {
    const hasFailed = state === 'failed' && (await checkedEntry(keys, db, 'payout_failed', id)) !== null
    if (!hasFailed) carried += part
  }
  return carried
}

/** Whether the journal has an outcome of this payout: then it must not be sent, whatever its row says. */
export async function isPayoutSettled({ keys, database }: Platform, payoutId: string): Promise<boolean> {
  const entryOf = (kind: 'payout_confirmed' | 'payout_failed') =>
    checkedEntry(keys, database.reader, kind, payoutId)
  return (await entryOf('payout_confirmed')) !== null || (await entryOf('payout_failed')) !== null
}
