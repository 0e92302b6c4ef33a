import { recordAudit } from '../flags/audit.service.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { isoTime } from '../platform/clock.ts'
import { sealedTable } from '../platform/crypto/sealed-rows.ts'
import { IntegrityError, type Vault } from '../platform/crypto/vault.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { headProblem, insertRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { last4Of } from './bank-accounts.rule.ts'
import { effectiveDestination, effectOf, whenEffective } from './payout-destination.rule.ts'
import { accountsOf, type BillingAccountRow, type DestinationRow } from './users.store.ts'

/*
 * The bank accounts that users give, sealed in the database: creators' payout destinations and merchants' billing accounts. Former ones stay,
 * because a user's accounts decide together which one counts.
 */

const FINGERPRINT_OF = 'iban'

export const SEALED_DESTINATIONS = sealedTable<DestinationRow, 'iban_encrypted' | 'iban_fingerprint'>({
  name: 'payout_destinations',
  column: 'iban_encrypted',
  purpose: 'payout_destination.iban',
  // The times are bound too, so that no destination comes into effect earlier or in another order.
  binding: (row) => ({ owner: row.user_id, facts: [row.account_title, row.effective_at, row.created_at] }),
  fingerprint: { column: 'iban_fingerprint', purpose: FINGERPRINT_OF, of: 'IBAN' },
  contradiction: (row, iban) =>
    last4Of(iban) === row.iban_last4 ? null : 'has the last characters of another IBAN',
})

export const SEALED_BILLING_ACCOUNTS = sealedTable<BillingAccountRow, 'account_encrypted'>({
  name: 'billing_accounts',
  column: 'account_encrypted',
  purpose: 'billing_account.account',
  binding: (row) => ({ owner: row.user_id, facts: [row.kind, row.created_at] }),
  contradiction: (row, text) =>
    last4Of(text) === row.account_last4 ? null : 'has the last characters of another account',
})

/** The accounts in these rows, in their order. Throws `IntegrityError`, which names the row, when one was changed, and `UnknownKeyError`. */
function openAll<Row extends { id: string }>(
  vault: Vault,
  { name, open }: { name: string; open(vault: Vault, row: Row): string },
  rows: readonly Row[],
): string[] {
  return rows.map((row) => {
    try {
      return open(vault, row)
    } catch (error) {
      if (!(error instanceof IntegrityError)) throw error
      // `payout destination ID does not open`.
      throw new IntegrityError(`${name.slice(0, -1).replace('_', ' ')} ${row.id} ${error.message}`)
    }
  })
}

const BROKEN = {
  payout_destinations:
    'A payout destination of this creator was changed in the database. Nothing is paid to them.',
  billing_accounts:
    'A billing account of this merchant was changed in the database. No invoice is sent to it.',
}

/** Flags a user who cannot be paid or invoiced because of `evidence`. */
export function flagBrokenAccount(
  platform: Platform,
  tx: Tx,
  table: keyof typeof BROKEN,
  userId: string,
  evidence: Record<string, unknown>,
): Promise<void> {
  return raiseFlag(platform, tx, {
    kind: 'integrity_violation',
    subjectType: 'user',
    subjectId: userId,
    summary: `${BROKEN[table]} Run "affiliate ledger verify", and put the row back from a backup.`,
    evidence,
  })
}

/** `same`: the newest is this one already. `first`: there is none yet. */
export type AccountChange = 'same' | 'first' | 'replacement'

/*
 * Payout destinations.
 */

const destinationsOf = (db: Queries, userIds: readonly string[]) =>
  accountsOf(db, 'payout_destinations', userIds)

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
  const rows = await destinationsOf(platform.database.reader, [creatorId])
  const ibans = openAll(platform.vault, SEALED_DESTINATIONS, rows)
  const index = rows.findIndex(({ id }) => id === destinationId)
  const [row, iban] = [rows[index], ibans[index]]
  if (!row || iban === undefined) {
    throw new IntegrityError(`payout destination ${destinationId} is not one of this creator's`)
  }
  const effect = effectOf(rows, row, Math.max(platform.clock.now(), payoutMadeAt))
  if (effect === 'never') {
    throw new IntegrityError(`payout destination ${destinationId} was replaced before it came into effect`)
  }
  return effect === 'waiting' ? null : { iban, account_title: row.account_title }
}

/**
 * What is wrong with a creator's destinations, or `null` when none was changed. All are checked, since together they
 * decide which one is in effect. Throws `UnknownKeyError`.
 */
export async function destinationProblem({ vault }: Platform, db: Queries, creatorId: string) {
  try {
    openAll(vault, SEALED_DESTINATIONS, await destinationsOf(db, [creatorId]))
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

/**
 * The fingerprints that the IBAN of a destination may have in other rows: more than one during a key rotation, and only the
 * row's own when it cannot be opened. Throws `UnknownKeyError`.
 */
export function ibanFingerprints({ vault }: Platform, row: DestinationRow): string[] {
  try {
    return vault.fingerprints(SEALED_DESTINATIONS.open(vault, row), FINGERPRINT_OF)
  } catch (error) {
    if (error instanceof IntegrityError) return [row.iban_fingerprint]
    throw error
  }
}

/** Which destination is in effect at `now` (epoch ms), by user id; users without one are missing. */
export async function destinationsInForce(db: Queries, userIds: readonly string[], now: number) {
  const inForce = new Map<string, DestinationRow>()
  const byUser = Map.groupBy(await destinationsOf(db, userIds), (row) => row.user_id)
  for (const [userId, rows] of byUser) {
    const row = effectiveDestination(rows, now)
    if (row) inForce.set(userId, row)
  }
  return inForce
}

/** The titles of all payout accounts that each user ever had; users without one are missing. */
export async function accountTitlesOf(db: Queries, userIds: readonly string[]) {
  const byUser = Map.groupBy(await destinationsOf(db, userIds), (row) => row.user_id)
  return new Map([...byUser].map(([userId, rows]) => [userId, rows.map((row) => row.account_title)]))
}

/** One of a creator's destinations, as people may see it; `null` for an unknown id. */
export async function destinationView(db: Queries, creatorId: string, destinationId: string) {
  const found = (await destinationsOf(db, [creatorId])).find(({ id }) => id === destinationId)
  return found ? { iban_last4: found.iban_last4, account_title: found.account_title } : null
}

/** A creator's destinations, as part of their account. */
export async function ownDestinations({ clock }: Platform, db: Queries, userId: string) {
  const now = clock.now()
  const rows = await destinationsOf(db, [userId])
  const current = effectiveDestination(rows, now)
  const newest = rows.at(-1)
  const upcoming = newest && newest.effective_at > now ? newest : null
  const shown = ({ iban_last4, account_title }: DestinationRow) => ({ iban_last4, account_title })
  return {
    payout_destination: current && shown(current),
    upcoming_payout_destination: upcoming && {
      ...shown(upcoming),
      effective_at: isoTime(upcoming.effective_at),
    },
  }
}

export async function destinationChange(
  { vault }: Platform,
  db: Queries,
  userId: string,
  { iban, account_title }: PayoutAccount,
): Promise<AccountChange> {
  const newest = (await destinationsOf(db, [userId])).at(-1)
  if (!newest) return 'first'
  const isSame = vault.fingerprints(iban, FINGERPRINT_OF).includes(newest.iban_fingerprint)
  return isSame && newest.account_title === account_title ? 'same' : 'replacement'
}

/**
 * Adds a destination. The first is in effect immediately; a replacement takes effect later and raises a flag. The caller must
 * have locked the user.
 */
export async function addDestination(
  platform: Platform,
  tx: Tx,
  userId: string,
  { iban, account_title }: PayoutAccount,
): Promise<void> {
  const now = platform.clock.now()
  const newest = (await destinationsOf(tx, [userId])).at(-1)
  const row = {
    id: platform.ids.next(),
    user_id: userId,
    iban_last4: last4Of(iban),
    account_title,
    effective_at: whenEffective({ hasEarlier: newest !== undefined, now }),
    created_at: now,
  }
  const sealed = SEALED_DESTINATIONS.seal(platform.vault, row, iban)
  await insertRows(tx, 'payout_destinations', [{ ...row, ...sealed }])
  await recordAudit(platform, tx, {
    actor: userId,
    action: 'user.payout_destination',
    subjectType: 'payout_destination',
    subjectId: row.id,
    before: newest && auditedDestination(newest),
    after: auditedDestination(row),
  })
  const data = await ownDestinations(platform, tx, userId)
  const changed = { type: 'payout_destination.changed', accountId: userId, subjectId: userId, data } as const
  await publishEvents(platform, tx, [changed])
  if (!newest) return
  await raiseFlag(platform, tx, {
    kind: 'payout_destination_replaced',
    subjectType: 'user',
    subjectId: userId,
    summary: 'A creator replaced the account that payouts go to. Check with them before it takes effect.',
    evidence: {
      former_iban_last4: newest.iban_last4,
      new_iban_last4: row.iban_last4,
      effective_at: isoTime(row.effective_at),
    },
  })
}

function auditedDestination(row: Pick<DestinationRow, 'id' | 'iban_last4' | 'effective_at'>) {
  const { id: payout_destination_id, iban_last4, effective_at } = row
  return { payout_destination_id, iban_last4, effective_at: isoTime(effective_at) }
}

/*
 * Billing accounts.
 */

const billingAccountsOf = (db: Queries, merchantId: string) =>
  accountsOf(db, 'billing_accounts', [merchantId])

/** An IBAN in electronic form, or a Raast ID in national form (03001234567). */
export type BillingAccount = { iban: string } | { raastId: string }

/**
 * The whole account that a merchant pays an invoice from, for the call to the processor only; `null` without one. An invoice that was
 * queued at `queuedAt` (epoch ms) goes to the account of that time, or to the first one given after it, so that every try
 * of a call has the same body. Throws `IntegrityError` when any of the merchant's accounts was changed in the database, since together they
 * decide which one counts, and `UnknownKeyError`.
 */
export async function billingAccountOf(
  { vault }: Pick<Platform, 'vault'>,
  db: Queries,
  merchantId: string,
  queuedAt: number,
): Promise<BillingAccount | null> {
  const rows = await billingAccountsOf(db, merchantId)
  const texts = openAll(vault, SEALED_BILLING_ACCOUNTS, rows)
  const former = rows.findLastIndex((row) => row.created_at <= queuedAt)
  const [row, text] = [rows.at(Math.max(former, 0)), texts.at(Math.max(former, 0))]
  if (!row || text === undefined) return null
  return row.kind === 'iban' ? { iban: text } : { raastId: text }
}

/** The merchant's billing account as its owner may see it; `null` without one. */
export async function ownBillingAccount(db: Queries, merchantId: string) {
  const newest = (await billingAccountsOf(db, merchantId)).at(-1)
  return newest ? billingView(newest) : null
}

export async function billingAccountChange(
  { vault }: Pick<Platform, 'vault'>,
  db: Queries,
  merchantId: string,
  account: BillingAccount,
): Promise<AccountChange> {
  const newest = (await billingAccountsOf(db, merchantId)).at(-1)
  if (!newest) return 'first'
  const { kind, text } = partsOf(account)
  // One that does not open can still be replaced.
  const isSame = newest.kind === kind && SEALED_BILLING_ACCOUNTS.openOrNull(vault, newest) === text
  return isSame ? 'same' : 'replacement'
}

/**
 * Adds an account, which counts immediately for invoices that are queued from now on. A replacement raises a flag: a thief of the
 * merchant's session could have another's account asked to pay. No delay is needed as for payouts, because no money moves until the
 * holder of the account approves the request. The caller must have locked the user.
 */
export async function addBillingAccount(
  platform: Platform,
  tx: Tx,
  merchantId: string,
  account: BillingAccount,
): Promise<void> {
  const newest = (await billingAccountsOf(tx, merchantId)).at(-1)
  const { kind, text } = partsOf(account)
  const row = {
    id: platform.ids.next(),
    user_id: merchantId,
    kind,
    account_last4: last4Of(text),
    created_at: platform.clock.now(),
  }
  const sealed = SEALED_BILLING_ACCOUNTS.seal(platform.vault, row, text)
  await insertRows(tx, 'billing_accounts', [{ ...row, ...sealed }])
  await recordAudit(platform, tx, {
    actor: merchantId,
    action: 'user.billing_account',
    subjectType: 'billing_account',
    subjectId: row.id,
    before: newest && { billing_account_id: newest.id, ...billingView(newest) },
    after: { billing_account_id: row.id, ...billingView(row) },
  })
  if (!newest) return
  const facts = { at: row.created_at, last4: row.account_last4 }
  await sendMail(platform, tx, { userId: merchantId, kind: 'billing_account_changed', facts })
  await raiseFlag(platform, tx, {
    kind: 'billing_account_replaced',
    subjectType: 'user',
    subjectId: merchantId,
    summary: 'A merchant replaced the account that invoices are paid from. Check with them.',
    evidence: { former_account: billingView(newest), new_account: billingView(row) },
  })
}

function partsOf(account: BillingAccount) {
  if ('iban' in account) return { kind: 'iban', text: account.iban } as const
  return { kind: 'raast_id', text: account.raastId } as const
}

function billingView({ kind, account_last4: last4 }: Pick<BillingAccountRow, 'kind' | 'account_last4'>) {
  return { kind, last4 }
}
