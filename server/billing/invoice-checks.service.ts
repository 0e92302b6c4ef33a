import { formatMoney, type Paisa } from '../../shared/money.ts'
import { closeFlag, findFlags, openFlagAbout, raiseFlag } from '../flags/flags.service.ts'
import { assertEntry, checkedEntry } from '../ledger/checked-entry.service.ts'
import { cycleClosed } from '../ledger/entries.rule.ts'
import { IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import type { Tx } from '../platform/database/database.ts'
import { requireAuthentic } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { subjectOf } from '../processor/attempts.service.ts'
import { type BillingAccount, billingAccountOf, ownBillingAccount } from '../users/sealed-accounts.service.ts'
import { lockAccount } from '../users/users.service.ts'
import { type CycleRow, findCycle } from './billing.store.ts'

/**
 * Checks a closed cycle before its invoice is requested: the journal closed it with this amount, for this merchant. Throws `IntegrityError`
 * when it was added or changed outside of the service, and `UnknownKeyError`.
 */
export async function assertInvoiceBacked(
  { keys, database: { reader: db } }: Platform,
  cycleId: string,
  amount: Paisa,
  customerId: string,
): Promise<void> {
  const cycle = await findCycle(db, cycleId)
  if (!cycle) throw new IntegrityError('there is no such cycle')
  requireAuthentic(keys, 'billing_cycles', cycle)
  const { merchant_id: merchantId, amount_due: amountDue, closed_at: closedAt } = cycle
  await assertEntry(keys, db, cycleClosed({ cycleId, merchantId, amountDue }), closedAt)
  if (amountDue !== amount) throw new IntegrityError('the call is about another amount')
  if (merchantId !== customerId) throw new IntegrityError('the call is about another merchant')
}

/** Whether the journal has the payment of this cycle: then no invoice must be requested, whatever its row says. */
export async function isCycleCharged({ keys, database }: Platform, cycleId: string): Promise<boolean> {
  return (await checkedEntry(keys, database.reader, 'cycle_charged', cycleId)) !== null
}

/** `missing`: the merchant has given none. `unreadable`: it is sealed with a key that this process lacks. */
export type InvoiceAccount =
  | { kind: 'ready'; account: BillingAccount }
  | { kind: 'missing'; merchantId: string; why: string }
  | { kind: 'unreadable'; why: string }
  | { kind: 'broken'; merchantId: string; problem: string }

/**
 * The account that a closed cycle's invoice, queued at `queuedAt` (epoch ms), is paid from. A missing one is flagged once per cycle;
 * the flag is resolved automatically when the merchant gives one.
 */
export async function invoiceAccount(
  platform: Platform,
  cycleId: string,
  queuedAt: number,
): Promise<InvoiceAccount> {
  const { reader } = platform.database
  const cycle = await findCycle(reader, cycleId)
  if (!cycle) throw new Error(`there is no cycle ${cycleId}`)
  const merchantId = cycle.merchant_id
  try {
    const account = await billingAccountOf(platform, reader, merchantId, queuedAt)
    if (!account) {
      await flagMissing(platform, cycle)
      return { kind: 'missing', merchantId, why: 'the merchant has given no billing account' }
    }
    await closeMissing(platform, cycleId)
    return { kind: 'ready', account }
  } catch (error) {
    if (error instanceof UnknownKeyError) {
      return { kind: 'unreadable', why: `the billing account was ${error.message}` }
    }
    if (error instanceof IntegrityError) return { kind: 'broken', merchantId, problem: error.message }
    throw error
  }
}

/** Whether the merchant has given an account. One that is being given is waited for, so that an invoice is not put off after it. */
export async function hasInvoiceAccount(tx: Tx, merchantId: string): Promise<boolean> {
  await lockAccount(tx, merchantId)
  return (await ownBillingAccount(tx, merchantId)) !== null
}

function missingAccount(cycleId: string) {
  return { kind: 'billing_account_missing', ...subjectOf('invoice', cycleId) } as const
}

/** Not again once a person has resolved it: the invoice still waits. */
async function flagMissing(platform: Platform, cycle: CycleRow): Promise<void> {
  const { database } = platform
  const { kind, subjectType, subjectId } = missingAccount(cycle.id)
  if ((await findFlags(database.reader, { kind, subjectId }, { limit: 1 })).length > 0) return
  const summary =
    'The invoice of this cycle waits, because the merchant has given no billing account. Ask them to set one with PATCH /me.'
  const evidence = { merchant_id: cycle.merchant_id, amount: formatMoney(cycle.amount_due) }
  await database.transaction((tx) =>
    raiseFlag(platform, tx, { kind, subjectType, subjectId, summary, evidence }),
  )
}

async function closeMissing(platform: Platform, cycleId: string): Promise<void> {
  const { database } = platform
  const subject = missingAccount(cycleId)
  if (!(await openFlagAbout(database.reader, subject))) return
  await database.transaction((tx) =>
    closeFlag(platform, tx, subject, 'The merchant has given a billing account.'),
  )
}
