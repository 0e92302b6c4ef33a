import type { Paisa } from '../../shared/money.ts'
import type { Queries, Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { Entry } from './entries.rule.ts'
import { type AccountBalance, insertEntries, sumAccounts, sumOfKind } from './ledger.store.ts'

/**
 * Writes entries into the journal: the only way by which money moves in this service. Runs in the transaction that
 * makes the change; an entry that is there already (same kind and subject) makes the whole transaction fail.
 * `at` (epoch ms): the very moment that the changed row carries; the invariants compare the two.
 */
export async function writeEntries(
  platform: Platform,
  tx: Tx,
  entries: readonly Entry[],
  at: number,
): Promise<void> {
  const rows = entries.map((entry) => ({ entry, id: platform.ids.next() }))
  await insertEntries(
    tx,
    rows.map(({ entry, id }) => ({ id, kind: entry.kind, subject_id: entry.subjectId, created_at: at })),
    rows.flatMap(({ entry, id }) =>
      entry.postings.map((posting, line) => ({
        entry_id: id,
        line,
        account: posting.account,
        owner_id: posting.owner,
        amount: posting.amount,
      })),
    ),
  )
}

/** All in paisa, never below zero. */
export interface CreatorBalance {
  /** Earned in cycles that are not charged yet. */
  pending: Paisa
  /** Payable, below the threshold or waiting for the next run. */
  released: Paisa
  /** In payouts whose outcome the processor has not told yet. */
  inTransit: Paisa
  paid: Paisa
}

export async function creatorBalance(db: Queries, creatorId: string): Promise<CreatorBalance> {
  const accounts = await sumAccounts(db, creatorId)
  const owed = (account: AccountBalance['account']) =>
    0 - (accounts.find((row) => row.account === account)?.balance ?? 0)
  return {
    pending: owed('creator_pending'),
    released: owed('creator_released'),
    inTransit: owed('payouts_in_transit'),
    paid: await sumOfKind(db, creatorId, 'payouts_in_transit', 'payout_confirmed'),
  }
}

/** Balances of every account, or of one owner's; debits above zero. */
export function accountBalances(db: Queries, ownerId: string | null = null): Promise<AccountBalance[]> {
  return sumAccounts(db, ownerId)
}
