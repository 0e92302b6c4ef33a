import type { Paisa } from '../../shared/money.ts'
import { assertEntry, checkedEntry } from '../ledger/checked-entry.service.ts'
import { cycleClosed } from '../ledger/entries.rule.ts'
import { IntegrityError } from '../platform/crypto/vault.ts'
import { requireAuthentic } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { findCycle } from './billing.store.ts'

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
