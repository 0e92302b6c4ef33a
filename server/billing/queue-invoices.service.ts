import type { Paisa } from '../../shared/money.ts'
import type { Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import { type NewAttempt, queueAttempt, queueAttempts } from '../processor/attempts.service.ts'
import { type Contact, contactsOf } from '../users/users.service.ts'
import type { CycleRow } from './billing.store.ts'

/** An invoice to be asked for. */
export interface Invoice {
  cycleId: string
  merchantId: string
  amount: Paisa
}

export function invoiceOf(cycle: CycleRow): Invoice {
  return { cycleId: cycle.id, merchantId: cycle.merchant_id, amount: cycle.amount_due }
}

/** Has a cycle's invoice asked for, of its merchant as named now; answers the attempt's id. */
export async function queueInvoice(
  platform: Platform,
  tx: Tx,
  invoice: Invoice,
  options: { lookUpFirst: boolean },
): Promise<string> {
  const contacts = await contactsOf(tx, [invoice.merchantId])
  return queueAttempt(platform, tx, { ...attemptFor(invoice, contacts), ...options })
}

/** The same for many cycles at once, each of which is asked for the first time. */
export async function queueInvoices(platform: Platform, tx: Tx, invoices: readonly Invoice[]): Promise<void> {
  const merchantIds = invoices.map((invoice) => invoice.merchantId)
  const contacts = await contactsOf(tx, merchantIds)
  await queueAttempts(
    platform,
    tx,
    invoices.map((invoice) => attemptFor(invoice, contacts)),
  )
}

function attemptFor(invoice: Invoice, contacts: ReadonlyMap<string, Contact>): NewAttempt {
  const { cycleId, merchantId, amount } = invoice
  const contact = contacts.get(merchantId)
  return {
    kind: 'invoice',
    subjectId: cycleId,
    amount,
    request: {
      customer: { id: merchantId, email: contact?.email ?? '', name: contact?.displayName ?? '' },
    },
  }
}
