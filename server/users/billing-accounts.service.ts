import { recordAudit } from '../flags/audit.service.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import { type Binding, IntegrityError, type SealedTable, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { entities } from '../platform/database/entities.ts'
import type { Platform } from '../platform/platform.ts'
import type { AccountChange } from './payout-destinations.service.ts'
import {
  type BillingAccountRow,
  billingAccountsAfter,
  findBillingAccounts,
  resealBillingAccount,
} from './users.store.ts'

const SEALED_FOR = 'billing_account.account'

/** An IBAN in electronic form, or a Raast ID in national form (03001234567). */
export type BillingAccount = { iban: string } | { raastId: string }

/**
 * The whole account that a merchant pays an invoice from, for the call to the processor only; `null` without one. An invoice that was
 * queued at `queuedAt` (epoch ms) goes to the account of that time, or to the first one given after it, so that every try
 * of a call has the same body. Throws `IntegrityError` when any of the merchant's accounts was changed in the database, since together they
 * decide which one counts, and `UnknownKeyError`.
 */
export async function billingAccountOf(
  platform: Pick<Platform, 'vault'>,
  db: Queries,
  merchantId: string,
  queuedAt: number,
): Promise<BillingAccount | null> {
  const rows = await findBillingAccounts(db, merchantId)
  const accounts: BillingAccount[] = []
  for (const row of rows) accounts.push(accountFrom(row.kind, await openNamed(platform, row)))
  const atThatTime = rows.findLastIndex((row) => row.created_at <= queuedAt)
  return accounts[Math.max(atThatTime, 0)] ?? null
}

/** Flags a merchant who cannot be invoiced because of `evidence`. */
export function flagBrokenBillingAccount(
  platform: Platform,
  tx: Tx,
  merchantId: string,
  evidence: Record<string, unknown>,
): Promise<void> {
  return raiseFlag(platform, tx, {
    kind: 'integrity_violation',
    subjectType: 'user',
    subjectId: merchantId,
    summary:
      'A billing account of this merchant was changed in the database. No invoice is sent to it. Run "affiliate ledger verify", and put the row back from a backup.',
    evidence,
  })
}

/** All billing accounts, for verification and key rotation. */
export const SEALED_BILLING_ACCOUNTS: SealedTable = {
  name: 'billing_accounts',
  column: 'account_encrypted',
  async page(db, vault, after, limit) {
    const rows = await billingAccountsAfter(db, after, limit)
    return rows.map((row) => ({
      id: row.id,
      sealed: row.account_encrypted,
      open: () => openAccount({ vault }, row),
      reseal: (tx, account) => resealBillingAccount(tx, row, vault.seal(account, bindingOf(row))),
    }))
  },
}

/** A billing account as its owner may see it. */
export interface BillingAccountView {
  kind: BillingAccountRow['kind']
  last4: string
}

export async function ownBillingAccount(db: Queries, merchantId: string): Promise<BillingAccountView | null> {
  const newest = (await findBillingAccounts(db, merchantId)).at(-1)
  return newest ? viewOf(newest) : null
}

export async function billingAccountChange(
  platform: Pick<Platform, 'vault'>,
  db: Queries,
  merchantId: string,
  account: BillingAccount,
): Promise<AccountChange> {
  const newest = (await findBillingAccounts(db, merchantId)).at(-1)
  if (!newest) return 'first'
  const { kind, text } = partsOf(account)
  return newest.kind === kind && (await openIfPossible(platform, newest)) === text ? 'same' : 'replacement'
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
  const newest = (await findBillingAccounts(tx, merchantId)).at(-1)
  const { kind, text } = partsOf(account)
  const row = {
    id: platform.ids.next(),
    user_id: merchantId,
    kind,
    account_last4: last4Of(text),
    created_at: platform.clock.now(),
  }
  const { em, BillingAccount } = await entities(tx)
  em.create(BillingAccount, { ...row, account_encrypted: platform.vault.seal(text, bindingOf(row)) })
  await em.flush()
  await recordAudit(platform, tx, {
    actor: merchantId,
    action: 'user.billing_account',
    subjectType: 'billing_account',
    subjectId: row.id,
    reason: null,
    before: newest ? auditedAccount(newest) : null,
    after: auditedAccount(row),
  })
  if (!newest) return
  const facts = { at: row.created_at, last4: row.account_last4 }
  await sendMail(platform, tx, { userId: merchantId, kind: 'billing_account_changed', facts })
  await raiseFlag(platform, tx, {
    kind: 'billing_account_replaced',
    subjectType: 'user',
    subjectId: merchantId,
    summary: 'A merchant replaced the account that invoices are paid from. Check with them.',
    evidence: { former_account: viewOf(newest), new_account: viewOf(row) },
  })
}

/** Throws `IntegrityError` when the row was changed, and `UnknownKeyError`. */
async function openAccount({ vault }: Pick<Platform, 'vault'>, row: BillingAccountRow): Promise<string> {
  const text = vault.open(row.account_encrypted, bindingOf(row))
  if (last4Of(text) !== row.account_last4)
    throw new IntegrityError('has the last characters of another account')
  return text
}

async function openNamed(platform: Pick<Platform, 'vault'>, row: BillingAccountRow): Promise<string> {
  try {
    return await openAccount(platform, row)
  } catch (error) {
    if (!(error instanceof IntegrityError)) throw error
    throw new IntegrityError(`billing account ${row.id} ${error.message}`)
  }
}

/** `null` for a row that does not open: its owner can still replace it. */
async function openIfPossible(
  platform: Pick<Platform, 'vault'>,
  row: BillingAccountRow,
): Promise<string | null> {
  try {
    return await openAccount(platform, row)
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) return null
    throw error
  }
}

function bindingOf(row: Omit<BillingAccountRow, 'account_encrypted' | 'row_digest'>): Binding {
  return { purpose: SEALED_FOR, row: row.id, owner: row.user_id, facts: [row.kind, row.created_at] }
}

function partsOf(account: BillingAccount): { kind: BillingAccountRow['kind']; text: string } {
  return 'iban' in account
    ? { kind: 'iban', text: account.iban }
    : { kind: 'raast_id', text: account.raastId }
}

function accountFrom(kind: BillingAccountRow['kind'], text: string): BillingAccount {
  return kind === 'iban' ? { iban: text } : { raastId: text }
}

function last4Of(text: string): string {
  return text.slice(-4)
}

function viewOf(row: Pick<BillingAccountRow, 'kind' | 'account_last4'>): BillingAccountView {
  return { kind: row.kind, last4: row.account_last4 }
}

function auditedAccount(row: Pick<BillingAccountRow, 'id' | 'kind' | 'account_last4'>) {
  return { billing_account_id: row.id, ...viewOf(row) }
}
