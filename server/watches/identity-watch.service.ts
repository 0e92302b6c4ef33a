import { raiseFlags } from '../flags/flags.service.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { mailboxOf } from '../users/mailbox.rule.ts'
import { ibanFingerprints } from '../users/sealed-accounts.service.ts'
import { withNewRows } from './flag-unusual.service.ts'
import {
  accounts,
  destinations,
  destinationsWithIban,
  holdersOfMailboxes,
  type IbanRow,
  insertMailboxes,
  mailboxesAfter,
  setMailboxFingerprint,
} from './watches.store.ts'

const ROWS = { first: NIL_ID, limit: 500 }
const MAX_LISTED = 50

/**
 * Compares new accounts and payout destinations with all others: flags a creator and a merchant with one mailbox, and users with one IBAN.
 * Returns whether there are more.
 */
export async function watchIdentities(platform: Platform): Promise<boolean> {
  const { database } = platform
  const moreAccounts = await database.transaction((tx) => {
    const rows = { ...ROWS, watermark: 'watches.accounts', query: accounts(tx) }
    return withNewRows(platform, tx, rows, (fresh) => compareMailboxes(platform, tx, fresh))
  })
  const moreDestinations = await database.transaction((tx) => {
    const rows = { ...ROWS, watermark: 'watches.destinations', query: destinations(tx) }
    return withNewRows(platform, tx, rows, (fresh) => compareIbans(platform, tx, fresh))
  })
  return moreAccounts || moreDestinations
}

async function compareMailboxes(
  platform: Platform,
  tx: Tx,
  fresh: readonly { id: string; email: string }[],
): Promise<void> {
  const found = fresh.map(({ id, email }) => ({ user_id: id, prints: mailboxFingerprints(platform, email) }))
  const rows = found.map(({ user_id, prints: [fingerprint = ''] }) => ({ user_id, fingerprint }))
  await insertMailboxes(tx, rows)
  const mailboxWith = new Map(found.flatMap(({ prints }) => prints.map((one) => [one, prints[0]] as const)))
  const holders = await holdersOfMailboxes(tx, [...mailboxWith.keys()])
  const shared = Map.groupBy(holders, (holder) => mailboxWith.get(holder.fingerprint))
  const flags = [...shared.values()].flatMap((sharing) => {
    const idsOf = (role: string) => sharing.flatMap((one) => (one.role === role ? one.user_id : []))
    const merchant_ids = idsOf('merchant')
    return idsOf('creator').flatMap((creator_id) =>
      merchant_ids.length === 0
        ? []
        : {
            kind: 'shared_mailbox' as const,
            subjectType: 'user' as const,
            subjectId: creator_id,
            summary: "A creator's e-mail address has the same mailbox as a merchant's.",
            evidence: { creator_id, merchant_ids },
          },
    )
  })
  await raiseFlags(platform, tx, flags)
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

async function compareIbans(platform: Platform, tx: Tx, fresh: readonly IbanRow[]): Promise<void> {
  const prints = new Map(fresh.map((row) => [row.id, ibanFingerprints(platform, row)]))
  const known = await destinationsWithIban(tx, [...new Set([...prints.values()].flat())])
  const byIban = Map.groupBy(known, (row) => row.iban_fingerprint)
  const flags = fresh.flatMap(({ id, user_id, iban_last4 }) => {
    const others = (prints.get(id) ?? [])
      .flatMap((fingerprint) => byIban.get(fingerprint) ?? [])
      .filter((other) => other.user_id !== user_id && other.id < id)
    if (others.length === 0) return []
    const other_user_ids = [...new Set(others.map((other) => other.user_id))].slice(0, MAX_LISTED)
    return {
      kind: 'shared_iban' as const,
      subjectType: 'user' as const,
      subjectId: user_id,
      summary: 'A user gave an IBAN that another user gave before.',
      evidence: { user_id, other_user_ids, iban_last4 },
    }
  })
  // One user may have given several.
  await raiseFlags(platform, tx, [...new Map(flags.map((flag) => [flag.subjectId, flag])).values()])
}
