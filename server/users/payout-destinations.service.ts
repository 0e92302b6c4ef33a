import { recordAudit } from '../moderation/audit.service.ts'
import { raiseFlag } from '../moderation/flags.service.ts'
import type { Queries, Tx } from '../platform/database.ts'
import { openSealed } from '../platform/key-mark.ts'
import type { Platform } from '../platform/platform.ts'
import type { SealedTable } from '../platform/sealed-rows.ts'
import { type Binding, IntegrityError } from '../platform/vault.ts'
import { ibanLast4 } from './iban.rule.ts'
import { effectiveDestination, effectOf, whenEffective } from './payout-destination.rule.ts'
import {
  type DestinationRow,
  destinationsAfter,
  findDestinations,
  insertDestination,
  resealDestination,
} from './payout-destinations.store.ts'

const SEALED_FOR = 'payout_destination.iban'
const FINGERPRINT_OF = 'iban'

export interface PayoutAccount {
  /** In electronic form: 24 characters. */
  iban: string
  account_title: string
}

/**
 * The whole IBAN of one of a creator's destinations: for the call to the processor, and nothing else. `null` while the
 * destination has not come into effect. `payoutMadeAt`: when the payout to it was made, epoch ms. The later of that and the
 * present counts: a payout is only made to a destination that is in effect, so after the clock was put back it is still sent. Throws `IntegrityError` when it is not the creator's, never comes into effect, or
 * any destination of the creator's is not as it was written, and `UnknownKeyError`.
 */
export async function openDestination(
  platform: Platform,
  creatorId: string,
  destinationId: string,
  payoutMadeAt: number,
): Promise<PayoutAccount | null> {
  const rows = await findDestinations(platform.database.reader, [creatorId])
  const ibans = await openIbans(platform, platform.database.reader, rows)
  const timed = rows.map(withTimes)
  const one = timed.find(({ row }) => row.id === destinationId)
  const iban = ibans.get(destinationId)
  if (!one || iban === undefined) {
    throw new IntegrityError(`payout destination ${destinationId} is not one of this creator's`)
  }
  const effect = effectOf(timed, one, Math.max(platform.clock.now(), payoutMadeAt))
  if (effect === 'never') {
    throw new IntegrityError(`payout destination ${destinationId} was replaced before it came into effect`)
  }
  return effect === 'waiting' ? null : { iban, account_title: one.row.account_title }
}

/**
 * What is wrong with a creator's destinations, or `null` when each is as it was written. All of them count, since they
 * decide together which one is in effect. Throws `UnknownKeyError`.
 */
export async function destinationProblem(
  platform: Platform,
  db: Queries,
  creatorId: string,
): Promise<string | null> {
  try {
    await openIbans(platform, db, await findDestinations(db, [creatorId]))
    return null
  } catch (error) {
    if (error instanceof IntegrityError) return error.message
    throw error
  }
}

/** Puts before a person that a creator is not paid because of what `evidence` says. */
export function flagBrokenDestination(
  platform: Platform,
  tx: Tx,
  creatorId: string,
  evidence: Record<string, unknown>,
): Promise<void> {
  return raiseFlag(platform, tx, {
    kind: 'integrity_violation',
    subjectType: 'user',
    subjectId: creatorId,
    summary:
      'A payout destination of this creator was changed in the database. Nothing is paid to them. Run "affiliate ledger verify", and put the row back from a backup.',
    evidence,
  })
}

async function openIbans(
  { vault }: Pick<Platform, 'vault'>,
  db: Queries,
  rows: readonly DestinationRow[],
): Promise<Map<string, string>> {
  const ibans = new Map<string, string>()
  for (const row of rows) {
    try {
      ibans.set(row.id, await openIban({ vault }, db, row))
    } catch (error) {
      if (!(error instanceof IntegrityError)) throw error
      throw new IntegrityError(`payout destination ${row.id} ${error.message}`)
    }
  }
  return ibans
}

/** Throws `IntegrityError` when the row is not as it was written, and `UnknownKeyError`. */
async function openIban(
  { vault }: Pick<Platform, 'vault'>,
  db: Queries,
  row: DestinationRow,
): Promise<string> {
  const iban = await openSealed(db, vault, row.iban_encrypted, bindingOf(row))
  if (!vault.fingerprints(iban, FINGERPRINT_OF).includes(row.iban_fingerprint)) {
    throw new IntegrityError('has the fingerprint of another IBAN')
  }
  if (ibanLast4(iban) !== row.iban_last4) throw new IntegrityError('has the last characters of another IBAN')
  return iban
}

/** Every payout destination, for verification and the rotation of keys. */
export const SEALED_DESTINATIONS: SealedTable = {
  name: 'payout_destinations',
  column: 'iban_encrypted',
  async page(db, vault, after, limit) {
    const rows = await destinationsAfter(db, after, limit)
    return rows.map((row) => ({
      id: row.id,
      sealed: row.iban_encrypted,
      open: () => openIban({ vault }, db, row),
      reseal: (tx, iban) =>
        resealDestination(tx, row, {
          iban_encrypted: vault.seal(iban, bindingOf(row)),
          iban_fingerprint: vault.fingerprint(iban, FINGERPRINT_OF),
        }),
    }))
  },
}

/**
 * The fingerprints that the IBAN of a destination may have in other rows: more than its own during a rotation of keys. Throws
 * `UnknownKeyError`; of a destination that does not open only its own is known.
 */
export async function ibanFingerprints(
  { vault }: Pick<Platform, 'vault'>,
  db: Queries,
  row: DestinationRow,
): Promise<string[]> {
  try {
    return vault.fingerprints(await openIban({ vault }, db, row), FINGERPRINT_OF)
  } catch (error) {
    if (error instanceof IntegrityError) return [row.iban_fingerprint]
    throw error
  }
}

/** The times are sealed too, so that no destination comes into effect earlier or in another order. */
function bindingOf(row: Omit<DestinationRow, 'iban_encrypted' | 'iban_fingerprint'>): Binding {
  return {
    purpose: SEALED_FOR,
    row: row.id,
    owner: row.user_id,
    facts: [row.account_title, row.effective_at, row.created_at],
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

/** The titles of all payout accounts that each user ever gave; users without one are missing. */
export async function accountTitlesOf(
  db: Queries,
  userIds: readonly string[],
): Promise<Map<string, string[]>> {
  const byUser = Map.groupBy(await findDestinations(db, userIds), (row) => row.user_id)
  return new Map([...byUser].map(([userId, rows]) => [userId, rows.map((row) => row.account_title)]))
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
    platform.vault.fingerprints(account.iban, FINGERPRINT_OF).includes(newest.iban_fingerprint) &&
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
  const row = {
    id: platform.ids.next(),
    user_id: userId,
    iban_last4: ibanLast4(account.iban),
    account_title: account.account_title,
    effective_at: whenEffective({ hasEarlier: newest !== undefined, now }),
    created_at: now,
  }
  await insertDestination(tx, {
    ...row,
    iban_encrypted: platform.vault.seal(account.iban, bindingOf(row)),
    iban_fingerprint: platform.vault.fingerprint(account.iban, FINGERPRINT_OF),
  })
  await recordAudit(platform, tx, {
    actor: userId,
    action: 'user.payout_destination',
    subjectType: 'payout_destination',
    subjectId: row.id,
    reason: null,
    before: newest ? auditedDestination(newest) : null,
    after: auditedDestination(row),
  })
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
  return effectiveDestination(rows.map(withTimes), now)?.row ?? null
}

function withTimes(row: DestinationRow) {
  return { row, createdAt: row.created_at, effectiveAt: row.effective_at }
}

function auditedDestination(row: Pick<DestinationRow, 'id' | 'iban_last4' | 'effective_at'>) {
  const { id, iban_last4, effective_at } = row
  return { payout_destination_id: id, iban_last4, effective_at: new Date(effective_at).toISOString() }
}

function viewOf(row: DestinationRow): DestinationView {
  return { ibanLast4: row.iban_last4, accountTitle: row.account_title, effectiveAt: row.effective_at }
}
