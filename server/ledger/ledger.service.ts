import type { Paisa } from '../../shared/money.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { chainEntries, headText, type LooseEntry, legsText, type Placed } from './chain.rule.ts'
import type { Entry } from './entries.rule.ts'
import { journalKeys } from './journal-keys.ts'
import {
  type AccountBalance,
  insertEntries,
  lockHeads,
  moveHeads,
  paidOut,
  sumAccounts,
} from './ledger.store.ts'

export { type AccountBalance, sumAccounts as accountBalances } from './ledger.store.ts'

/**
 * Writes entries into the journal: the only way by which money moves in this service. Runs in the transaction that
 * makes the change; an entry that is there already (same kind and subject) makes the whole transaction fail.
 * `at` (epoch ms): the very moment that the changed row carries; the invariants compare the two. Hashes and heads are made
 * with the current key.
 *
 * The ends of the entries' ledgers are locked here, in sorted order. Who closes cycles of several merchants has locked those
 * cycles and their merchants' credits before, and may write again after this, for others whose open cycles it holds. Two such
 * never wait for each other in a circle: both take open cycles first of all, in the sorted order of merchants, and a
 * writer for a single merchant waits for no other locks.
 */
export async function writeEntries(
  platform: Platform,
  tx: Tx,
  entries: readonly Entry[],
  at: number,
): Promise<void> {
  if (entries.length === 0) return
  const locked = await lockHeads(
    tx,
    entries.map(({ ledgerId }) => ledgerId),
  )
  const loose = entries.map(({ kind, subjectId, ledgerId, postings }) => {
    return { id: platform.ids.next(), ledgerId, kind, subjectId, createdAt: at, legs: legsText(postings) }
  })
  const key = journalKeys(platform.keys).current
  const { places, heads } = chainEntries(key.entry, locked, loose)
  await insertEntries(
    tx,
    loose.map(({ id, kind, subjectId, ledgerId }, index) => {
      return {
        id,
        kind,
        subject_id: subjectId,
        created_at: at,
        ledger_id: ledgerId,
        ...(places[index] as Placed),
      }
    }),
    entries.flatMap(({ postings }, index) =>
      postings.map(({ account, owner, amount }, line) => {
        return { entry_id: (loose[index] as LooseEntry).id, line, account, owner_id: owner, amount }
      }),
    ),
  )
  await moveHeads(
    tx,
    heads.map((head) => ({ ...head, mac: key.head(headText(head)) })),
  )
}

/** What a creator has earned, all in paisa and never below zero. */
export async function creatorBalance(db: Queries, creatorId: string) {
  const accounts = await sumAccounts(db, creatorId)
  const owed = (account: AccountBalance['account']): Paisa =>
    0 - (accounts.find((row) => row.account === account)?.balance ?? 0)
  return {
    /** Earned in cycles that are not charged yet. */
    pending: owed('creator_pending'),
    /** Payable, below the threshold or waiting for the next run. */
    released: owed('creator_released'),
    /** In payouts whose outcome the processor has not reported. */
    inTransit: owed('payouts_in_transit'),
    paid: await paidOut(db, creatorId),
  }
}
