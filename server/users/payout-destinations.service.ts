import { recordAudit } from '../flags/audit.service.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { type Binding, IntegrityError, type SealedTable } from '../platform/crypto/vault.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { entities } from '../platform/database/entities.ts'
import { headProblem } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { ibanLast4 } from './iban.rule.ts'
import {
  type DestinationView,
  effectiveDestination,
  effectOf,
  type OwnDestinations,
  whenEffective,
} from './payout-destination.rule.ts'
import { wireDestinations } from './user-wire.ts'
import { type DestinationRow, destinationsAfter, findDestinations, resealDestination } from './users.store.ts'

const SEALED_FOR = 'payout_destination.iban'
const FINGERPRINT_OF = 'iban'

export interface PayoutAccount {
  /** In electronic form: 24 characters. */
  iban: string
  account_title: string
}

/**
 * The whole IBAN of one of a creator's destinations, for the call to the processor only. `null` while the destination is not
 * in effect, at the later of now and `payoutMadeAt` (epoch ms): a payout is made only to a destination in effect, so a clock that was
 * put back must not stop it. Throws `IntegrityError` when the destination is not the creator's or never comes into effect, or
 * when any of the creator's destinations was changed, and `UnknownKeyError`.
 */
export async function openDestination(
  platform: Platform,
  creatorId: string,
  destinationId: string,
  payoutMadeAt: number,
): Promise<PayoutAccount | null> {
  const rows = await findDestinations(platform.database.reader, [creatorId])
  const ibans = await openIbans(platform, rows)
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
 * What is wrong with a creator's destinations, or `null` when none was changed. All are checked, since together they
 * decide which one is in effect. Throws `UnknownKeyError`.
 */
export async function destinationProblem(
  platform: Platform,
  db: Queries,
  creatorId: string,
): Promise<string | null> {
  try {
    await openIbans(platform, await findDestinations(db, [creatorId]))
    return null
  } catch (error) {
    if (error instanceof IntegrityError) return error.message
    throw error
  }
}

/**
 * What shows that destinations were deleted, or replaced by older ones: `null` when nothing does. Without the newest one a former one
 * would be in effect. Reads all destinations. Throws `UnknownKeyError`.
 */
export function missingDestinations({ keys }: Platform, db: Queries): Promise<string | null> {
  return headProblem(db, keys, 'payout_destinations')
}

/** Flags a creator who cannot be paid because of `evidence`. */
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
  rows: readonly DestinationRow[],
): Promise<Map<string, string>> {
  const ibans = new Map<string, string>()
  for (const row of rows) {
    try {
      ibans.set(row.id, await openIban({ vault }, row))
    } catch (error) {
      if (!(error instanceof IntegrityError)) throw error
      throw new IntegrityError(`payout destination ${row.id} ${error.message}`)
    }
  }
  return ibans
}

/** Throws `IntegrityError` when the row was changed, and `UnknownKeyError`. */
async function openIban({ vault }: Pick<Platform, 'vault'>, row: DestinationRow): Promise<string> {
  const iban = vault.open(row.iban_encrypted, bindingOf(row))
  if (!vault.fingerprints(iban, FINGERPRINT_OF).includes(row.iban_fingerprint)) {
    throw new IntegrityError('has the fingerprint of another IBAN')
  }
  if (ibanLast4(iban) !== row.iban_last4) throw new IntegrityError('has the last characters of another IBAN')
  return iban
}

/** All payout destinations, for verification and key rotation. */
export const SEALED_DESTINATIONS: SealedTable = {
  name: 'payout_destinations',
  column: 'iban_encrypted',
  async page(db, vault, after, limit) {
    const rows = await destinationsAfter(db, after, limit)
    return rows.map((row) => ({
      id: row.id,
      sealed: row.iban_encrypted,
      open: () => openIban({ vault }, row),
      reseal: (tx, iban) =>
        resealDestination(tx, row, {
          iban_encrypted: vault.seal(iban, bindingOf(row)),
          iban_fingerprint: vault.fingerprint(iban, FINGERPRINT_OF),
        }),
    }))
  },
}

/**
 * The fingerprints that the IBAN of a destination may have in other rows: more than one during a key rotation, and only the
 * row's own when it cannot be opened. Throws `UnknownKeyError`.
 */
export async function ibanFingerprints(
  { vault }: Pick<Platform, 'vault'>,
  row: DestinationRow,
): Promise<string[]> {
  try {
    return vault.fingerprints(await openIban({ vault }, row), FINGERPRINT_OF)
  } catch (error) {
    if (error instanceof IntegrityError) return [row.iban_fingerprint]
    throw error
  }
}

/** The times are sealed too, so that no destination comes into effect earlier or in another order. */
function bindingOf(row: Omit<DestinationRow, 'iban_encrypted' | 'iban_fingerprint' | 'row_digest'>): Binding {
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

/** The titles of all payout accounts that each user ever had; users without one are missing. */
export async function accountTitlesOf(
  db: Queries,
  userIds: readonly string[],
): Promise<Map<string, string[]>> {
  const byUser = Map.groupBy(await findDestinations(db, userIds), (row) => row.user_id)
  return new Map([...byUser].map(([userId, rows]) => [userId, rows.map((row) => row.account_title)]))
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
export type AccountChange = 'same' | 'first' | 'replacement'

export async function destinationChange(
  platform: Platform,
  db: Queries,
  userId: string,
  account: PayoutAccount,
): Promise<AccountChange> {
  const newest = (await findDestinations(db, [userId])).at(-1)
  if (!newest) return 'first'
  const same =
    platform.vault.fingerprints(account.iban, FINGERPRINT_OF).includes(newest.iban_fingerprint) &&
    newest.account_title === account.account_title
  return same ? 'same' : 'replacement'
}

/**
 * Adds a destination. The first is in effect immediately; a replacement takes effect later and raises a flag. The caller must
 * have locked the user.
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
  const { em, PayoutDestination } = await entities(tx)
  em.create(PayoutDestination, {
    ...row,
    iban_encrypted: platform.vault.seal(account.iban, bindingOf(row)),
    iban_fingerprint: platform.vault.fingerprint(account.iban, FINGERPRINT_OF),
  })
  await em.flush()
  await recordAudit(platform, tx, {
    actor: userId,
    action: 'user.payout_destination',
    subjectType: 'payout_destination',
    subjectId: row.id,
    reason: null,
    before: newest ? auditedDestination(newest) : null,
    after: auditedDestination(row),
  })
  await publishEvents(platform, tx, [
    {
      type: 'payout_destination.changed',
      accountId: userId,
      subjectId: userId,
      data: wireDestinations(await ownDestinations(platform, tx, userId)),
    },
  ])
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
