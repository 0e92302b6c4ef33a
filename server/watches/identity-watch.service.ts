import { raiseFlag } from '../flags/flags.service.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { firstIdAt, NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { mailboxOf } from '../users/mailbox.rule.ts'
import { ibanFingerprints } from '../users/sealed-accounts.service.ts'
import { withNewRows } from './patterns.service.ts'
import {
  accountsBetween,
  destinationsBetween,
  destinationsWithIban,
  holdersOfMailboxes,
  type IbanRow,
  insertMailboxes,
  mailboxesAfter,
  setMailboxFingerprint,
} from './watches.store.ts'

const ROWS_PER_RUN = 500
/** A row commits within this time after its id is made, ms. */
const LAG_MS = 30_000

/**
 * Compares new accounts and payout destinations with all others: flags a creator and a merchant with one mailbox, and users with one IBAN.
 * Returns whether there are more.
 */
export async function watchIdentities(platform: Platform): Promise<boolean> {
  const fresh = { first: NIL_ID, to: firstIdAt(platform.clock.now() - LAG_MS), limit: ROWS_PER_RUN }
  const moreAccounts = await platform.database.transaction((tx) => {
    const rows = { ...fresh, watermark: 'watches.accounts' }
    return withNewRows(tx, { ...rows, read: (range) => accountsBetween(tx, range) }, (accounts) =>
      compareMailboxes(platform, tx, accounts),
    )
  })
  const moreDestinations = await platform.database.transaction((tx) => {
    const rows = { ...fresh, watermark: 'watches.destinations' }
    return withNewRows(tx, { ...rows, read: (range) => destinationsBetween(tx, range) }, (destinations) =>
      compareIbans(platform, tx, destinations),
    )
  })
  return moreAccounts || moreDestinations
}

async function compareMailboxes(
  platform: Platform,
  tx: Tx,
  accounts: readonly { id: string; email: string }[],
): Promise<void> {
  const found = accounts.map(({ id, email }) => ({
    user_id: id,
    fingerprints: mailboxFingerprints(platform, email),
  }))
  await insertMailboxes(
    tx,
    found.map(({ user_id, fingerprints: [fingerprint = ''] }) => ({ user_id, fingerprint })),
  )
  await flagSharedMailboxes(
    platform,
    tx,
    found.map(({ fingerprints }) => fingerprints),
  )
}

/** The current key's fingerprint first; during a key rotation, rows may have another one. */
function mailboxFingerprints({ vault }: Platform, email: string): string[] {
  return vault.fingerprints(mailboxOf(email), 'mailbox')
}

/** Gives a page of mailboxes, by account id, the fingerprints of the current key; without `tx` it only counts them. */
export async function refreshMailboxes(
  platform: Platform,
  db: Queries,
  tx: Tx | null,
  { after, limit }: { after: string | null; limit: number },
): Promise<{ last: string | null; rows: number; changed: number }> {
  const page = await mailboxesAfter(db, after, limit)
  const changes = page.flatMap(({ user_id, email, fingerprint: former }) => {
    const [fingerprint = ''] = mailboxFingerprints(platform, email)
    return fingerprint === former ? [] : [{ user_id, fingerprint }]
  })
  if (tx) for (const change of changes) await setMailboxFingerprint(tx, change)
  return { last: page.at(-1)?.user_id ?? null, rows: page.length, changed: changes.length }
}

/** `mailboxes` holds all fingerprints of each mailbox. */
async function flagSharedMailboxes(
  platform: Platform,
  tx: Tx,
  mailboxes: readonly (readonly string[])[],
): Promise<void> {
  const mailboxWith = new Map(mailboxes.flatMap((all) => all.map((one) => [one, all[0]] as const)))
  const holders = await holdersOfMailboxes(tx, [...mailboxWith.keys()])
  for (const sharing of Map.groupBy(holders, (holder) => mailboxWith.get(holder.fingerprint)).values()) {
    const merchantIds = sharing.flatMap((holder) => (holder.role === 'merchant' ? holder.user_id : []))
    if (merchantIds.length === 0) continue
    for (const creator of sharing.filter((holder) => holder.role === 'creator')) {
      await raiseFlag(platform, tx, {
        kind: 'shared_mailbox',
        subjectType: 'user',
        subjectId: creator.user_id,
        summary: "A creator's e-mail address has the same mailbox as a merchant's.",
        evidence: { creator_id: creator.user_id, merchant_ids: merchantIds },
      })
    }
  }
}

async function compareIbans(platform: Platform, tx: Tx, fresh: readonly IbanRow[]): Promise<void> {
  const prints = new Map<string, string[]>()
  for (const row of fresh) prints.set(row.id, ibanFingerprints(platform, row))
  const byIban = Map.groupBy(
    await destinationsWithIban(tx, [...new Set([...prints.values()].flat())]),
    (row) => row.iban_fingerprint,
  )
  for (const row of fresh) {
    const withIban = (prints.get(row.id) ?? []).flatMap((fingerprint) => byIban.get(fingerprint) ?? [])
    const others = withIban.filter((other) => isEarlierOfAnother(other, row))
    if (others.length === 0) continue
    await raiseFlag(platform, tx, {
      kind: 'shared_iban',
      subjectType: 'user',
      subjectId: row.user_id,
      summary: 'A user gave an IBAN that another user gave before.',
      evidence: {
        user_id: row.user_id,
        other_user_ids: [...new Set(others.map((other) => other.user_id))].slice(0, 50),
        iban_last4: row.iban_last4,
      },
    })
  }
}

function isEarlierOfAnother(other: IbanRow, row: IbanRow): boolean {
  return other.user_id !== row.user_id && other.id < row.id
}
