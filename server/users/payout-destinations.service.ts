import { raiseFlag } from '../moderation/flags.service.ts'
import type { Queries, Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import { ibanLast4 } from './iban.rule.ts'
import { effectiveDestination, whenEffective } from './payout-destination.rule.ts'
import {
  type DestinationRow,
  findDestinationById,
  findDestinations,
  insertDestination,
} from './payout-destinations.store.ts'

/** What the sealed column is for: a value moved elsewhere does not open. */
const SEALED_FOR = 'payout_destination.iban'
const FINGERPRINT_OF = 'iban'

export interface PayoutAccount {
  /** In electronic form: 24 characters. */
  iban: string
  account_title: string
}

/** The whole IBAN of one destination: for the call to the processor, and nothing else. */
export async function openDestination(platform: Platform, destinationId: string): Promise<PayoutAccount> {
  const row = await findDestinationById(platform.database.reader, destinationId)
  if (!row) throw new Error(`no payout destination ${destinationId}`)
  return {
    iban: platform.vault.decrypt(row.iban_encrypted, SEALED_FOR),
    account_title: row.account_title,
  }
}

/** A destination that payouts go to; times in epoch ms. */
export interface DestinationInForce {
  id: string
  createdAt: number
  effectiveAt: number
}

/** Which destination is in effect at `now` (epoch ms), by user id; users without one are missing. */
export async function destinationsInForce(
  db: Queries,
  userIds: readonly string[],
  now: number,
): Promise<Map<string, DestinationInForce>> {
  const inForce = new Map<string, DestinationInForce>()
  for (const [userId, theirs] of Map.groupBy(await findDestinations(db, userIds), (row) => row.user_id)) {
    const row = effectiveAt(theirs, now)
    if (row) inForce.set(userId, { id: row.id, createdAt: row.created_at, effectiveAt: row.effective_at })
  }
  return inForce
}

/** A destination as its owner may see it. */
export interface DestinationView {
  ibanLast4: string
  accountTitle: string
  /** Epoch ms. */
  effectiveAt: number
}

export interface OwnDestinations {
  /** In effect now. */
  current: DestinationView | null
  /** Given, and not in effect yet. */
  upcoming: DestinationView | null
}

export async function ownDestinations(
  platform: Platform,
  db: Queries,
  userId: string,
): Promise<OwnDestinations> {
  const now = platform.clock.now()
  const rows = await findDestinations(db, [userId])
  const current = effectiveAt(rows, now)
  const newest = rows.at(-1)
  return {
    current: current && viewOf(current),
    upcoming: newest && newest.effective_at > now ? viewOf(newest) : null,
  }
}

/** `same`: the newest is this one already. `first`: there is none yet. */
export type DestinationChange = 'same' | 'first' | 'replacement'

export async function destinationChange(
  platform: Platform,
  db: Queries,
  userId: string,
  account: PayoutAccount,
): Promise<DestinationChange> {
  const newest = (await findDestinations(db, [userId])).at(-1)
  if (!newest) return 'first'
  const same =
    newest.iban_fingerprint === platform.vault.fingerprint(account.iban, FINGERPRINT_OF) &&
    newest.account_title === account.account_title
  return same ? 'same' : 'replacement'
}

/**
 * Adds a destination. The first counts at once; a replacement counts later and raises a flag. The caller holds the
 * user's row, so that of two at once one is the replacement.
 */
export async function addDestination(
  platform: Platform,
  tx: Tx,
  userId: string,
  account: PayoutAccount,
): Promise<void> {
  const now = platform.clock.now()
  const newest = (await findDestinations(tx, [userId])).at(-1)
  const row: DestinationRow = {
    id: platform.ids.next(),
    user_id: userId,
    iban_encrypted: platform.vault.encrypt(account.iban, SEALED_FOR),
    iban_fingerprint: platform.vault.fingerprint(account.iban, FINGERPRINT_OF),
    iban_last4: ibanLast4(account.iban),
    account_title: account.account_title,
    effective_at: whenEffective({ hasEarlier: newest !== undefined, now }),
    created_at: now,
  }
  await insertDestination(tx, row)
  if (!newest) return
  await raiseFlag(platform, tx, {
    kind: 'payout_destination_replaced',
    subjectType: 'user',
    subjectId: userId,
    summary: 'A creator replaced the account that payouts go to. Check with them before it takes effect.',
    evidence: {
      former_iban_last4: newest.iban_last4,
      new_iban_last4: row.iban_last4,
      effective_at: new Date(row.effective_at).toISOString(),
    },
  })
}

function effectiveAt(rows: readonly DestinationRow[], now: number): DestinationRow | null {
  const timed = rows.map((row) => ({ row, createdAt: row.created_at, effectiveAt: row.effective_at }))
  return effectiveDestination(timed, now)?.row ?? null
}

function viewOf(row: DestinationRow): DestinationView {
  return { ibanLast4: row.iban_last4, accountTitle: row.account_title, effectiveAt: row.effective_at }
}
