import { recordAudit } from '../flags/audit.service.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { type Sealing, sealedTable } from '../platform/crypto/sealed-rows.ts'
import { IntegrityError, UnknownKeyError, type Vault } from '../platform/crypto/vault.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { headProblem, insertRows } from '../platform/database/protected-rows.ts'
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
import { type AccountRow, accountsOf, type BillingAccountRow, type DestinationRow } from './users.store.ts'

/*
 * The bank accounts that users give, sealed in the database: creators' payout destinations and merchants' billing accounts. Former ones stay,
 * because a user's accounts decide together which one counts.
 */

const FINGERPRINT_OF = 'iban'

type Sealed = 'iban_encrypted' | 'iban_fingerprint' | 'account_encrypted' | 'row_digest'

/** The times are bound too, so that no destination comes into effect earlier or in another order. */
function destinationBinding(row: Omit<DestinationRow, Sealed>) {
  const facts = [row.account_title, row.effective_at, row.created_at]
  return { purpose: 'payout_destination.iban', row: row.id, owner: row.user_id, facts }
}

function sealDestination(vault: Vault, row: Omit<DestinationRow, Sealed>, iban: string) {
  const iban_encrypted = vault.seal(iban, destinationBinding(row))
  return { iban_encrypted, iban_fingerprint: vault.fingerprint(iban, FINGERPRINT_OF) }
}

const DESTINATIONS: Kind<DestinationRow> = {
  name: 'payout_destinations',
  column: 'iban_encrypted',
  words: 'payout destination',
  seal: sealDestination,
  open(vault, row) {
    const iban = vault.open(row.iban_encrypted, destinationBinding(row))
    if (!vault.fingerprints(iban, FINGERPRINT_OF).includes(row.iban_fingerprint)) {
      throw new IntegrityError('has the fingerprint of another IBAN')
    }
    if (ibanLast4(iban) === row.iban_last4) return iban
    throw new IntegrityError('has the last characters of another IBAN')
  },
}

function billingBinding(row: Omit<BillingAccountRow, Sealed>) {
  const facts = [row.kind, row.created_at]
  return { purpose: 'billing_account.account', row: row.id, owner: row.user_id, facts }
}

function sealBillingAccount(vault: Vault, row: Omit<BillingAccountRow, Sealed>, text: string) {
  return { account_encrypted: vault.seal(text, billingBinding(row)) }
}

const BILLING_ACCOUNTS: Kind<BillingAccountRow> = {
  name: 'billing_accounts',
  column: 'account_encrypted',
  words: 'billing account',
  seal: sealBillingAccount,
  open(vault, row) {
    const text = vault.open(row.account_encrypted, billingBinding(row))
    if (last4Of(text) === row.account_last4) return text
    throw new IntegrityError('has the last characters of another account')
  },
}

interface Kind<Row> extends Sealing<Row> {
  /** For messages. */
  words: string
}

export const SEALED_DESTINATIONS = sealedTable(DESTINATIONS)
export const SEALED_BILLING_ACCOUNTS = sealedTable(BILLING_ACCOUNTS)

/** The accounts in these rows, in their order. Throws `IntegrityError`, which names the row, when one was changed, and `UnknownKeyError`. */
function openAll<Row extends AccountRow>(vault: Vault, kind: Kind<Row>, rows: readonly Row[]): string[] {
  return rows.map((row) => {
    try {
      return kind.open(vault, row)
    } catch (error) {
      if (!(error instanceof IntegrityError)) throw error
      throw new IntegrityError(`${kind.words} ${row.id} ${error.message}`)
    }
  })
}

/** `null` for a row that does not open: its owner can still replace it. */
function openIfPossible<Row>(vault: Vault, kind: Kind<Row>, row: Row): string | null {
  try {
    return kind.open(vault, row)
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) return null
    throw error
  }
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
  const rows = await accountsOf(platform.database.reader, 'payout_destinations', [creatorId])
  const ibans = openAll(platform.vault, DESTINATIONS, rows)
  const timed = rows.map(withTimes)
  const index = rows.findIndex(({ id }) => id === destinationId)
  const [one, iban] = [timed[index], ibans[index]]
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
  { vault }: Platform,
  db: Queries,
  creatorId: string,
): Promise<string | null> {
  try {
    openAll(vault, DESTINATIONS, await accountsOf(db, 'payout_destinations', [creatorId]))
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
    return vault.fingerprints(DESTINATIONS.open(vault, row), FINGERPRINT_OF)
  } catch (error) {
    if (error instanceof IntegrityError) return [row.iban_fingerprint]
    throw error
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
  const rows = await accountsOf(db, 'payout_destinations', userIds)
  for (const [userId, theirs] of Map.groupBy(rows, (row) => row.user_id)) {
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
  const rows = await accountsOf(db, 'payout_destinations', userIds)
  const byUser = Map.groupBy(rows, (row) => row.user_id)
  return new Map([...byUser].map(([userId, rows]) => [userId, rows.map((row) => row.account_title)]))
}

export async function ownDestinations(
  platform: Platform,
  db: Queries,
  userId: string,
): Promise<OwnDestinations> {
  const now = platform.clock.now()
  const rows = await accountsOf(db, 'payout_destinations', [userId])
  const current = effectiveAt(rows, now)
  const newest = rows.at(-1)
  return {
    current: current && viewOf(current),
    upcoming: newest && newest.effective_at > now ? viewOf(newest) : null,
  }
}

export async function destinationChange(
  { vault }: Platform,
  db: Queries,
  userId: string,
  account: PayoutAccount,
): Promise<AccountChange> {
  const newest = (await accountsOf(db, 'payout_destinations', [userId])).at(-1)
  if (!newest) return 'first'
  const same =
    vault.fingerprints(account.iban, FINGERPRINT_OF).includes(newest.iban_fingerprint) &&
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
  const newest = (await accountsOf(tx, 'payout_destinations', [userId])).at(-1)
  const row = {
    id: platform.ids.next(),
    user_id: userId,
    iban_last4: ibanLast4(account.iban),
    account_title: account.account_title,
    effective_at: whenEffective({ hasEarlier: newest !== undefined, now }),
    created_at: now,
  }
  const sealed = sealDestination(platform.vault, row, account.iban)
  await insertRows(tx, 'payout_destinations', [{ ...row, ...sealed }])
  await recordAudit(platform, tx, {
    actor: userId,
    action: 'user.payout_destination',
    subjectType: 'payout_destination',
    subjectId: row.id,
    before: newest && auditedDestination(newest),
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

/*
 * Billing accounts.
 */

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
  const rows = await accountsOf(db, 'billing_accounts', [merchantId])
  const texts = openAll(vault, BILLING_ACCOUNTS, rows)
  const index = Math.max(
    rows.findLastIndex((row) => row.created_at <= queuedAt),
    0,
  )
  const [row, text] = [rows[index], texts[index]]
  if (!row || text === undefined) return null
  return row.kind === 'iban' ? { iban: text } : { raastId: text }
}

/** A billing account as its owner may see it. */
export interface BillingAccountView {
  kind: BillingAccountRow['kind']
  last4: string
}

export async function ownBillingAccount(db: Queries, merchantId: string): Promise<BillingAccountView | null> {
  const newest = (await accountsOf(db, 'billing_accounts', [merchantId])).at(-1)
  return newest ? billingView(newest) : null
}

export async function billingAccountChange(
  { vault }: Pick<Platform, 'vault'>,
  db: Queries,
  merchantId: string,
  account: BillingAccount,
): Promise<AccountChange> {
  const newest = (await accountsOf(db, 'billing_accounts', [merchantId])).at(-1)
  if (!newest) return 'first'
  const { kind, text } = partsOf(account)
  const isSame = newest.kind === kind && openIfPossible(vault, BILLING_ACCOUNTS, newest) === text
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
  const newest = (await accountsOf(tx, 'billing_accounts', [merchantId])).at(-1)
  const { kind, text } = partsOf(account)
  const row = {
    id: platform.ids.next(),
    user_id: merchantId,
    kind,
    account_last4: last4Of(text),
    created_at: platform.clock.now(),
  }
  const sealed = sealBillingAccount(platform.vault, row, text)
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

function partsOf(account: BillingAccount): { kind: BillingAccountRow['kind']; text: string } {
  return 'iban' in account
    ? { kind: 'iban', text: account.iban }
    : { kind: 'raast_id', text: account.raastId }
}

function last4Of(text: string): string {
  return text.slice(-4)
}

function billingView(row: Pick<BillingAccountRow, 'kind' | 'account_last4'>): BillingAccountView {
  return { kind: row.kind, last4: row.account_last4 }
}
