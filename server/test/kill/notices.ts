import * as assert from 'uvu/assert'
import type { Database } from '../../platform/database/database.ts'
import type { Cast } from './figures.ts'
import { countsOf } from './mails.ts'

/** By hand, what each of a round's people is notified of: `count type`, by type. */
export const EXPECTED_NOTICES: Record<string, string[]> = {
  merchant: [
    '2 application.created',
    '2 billing_cycle.charged',
    '2 billing_cycle.closed',
    '5 sale.accepted',
    '1 sale.rejected',
  ],
  // Sales of 1,000.00, 333.33 and, in a cycle of its own, 800.00.
  ayesha: [
    '1 application.decided',
    '2 balance.released',
    '2 payout.paid',
    '1 payout_destination.changed',
    '3 sale.accepted',
  ],
  bilal: [
    '1 application.decided',
    '1 balance.released',
    '1 payout.paid',
    '1 payout_destination.changed',
    '2 sale.accepted',
  ],
}

/**
 * The different events that have arrived for each of a round's people. Fails for an event that has not arrived, and for one that first
 * arrived before an earlier one about its subject.
 */
export async function readNotices(
  { reader }: Database,
  received: readonly { id: string }[],
  { merchantId, creators }: Cast,
): Promise<Record<string, string[]>> {
  const people = { merchant: merchantId, ...creators }
  const rows = await reader
    .selectFrom('outbox_events')
    .select(['id', 'type', 'account_id', 'subject_id', 'sequence'])
    .where('account_id', 'in', Object.values(people))
    .orderBy('sequence')
    .execute()
  const arrivals = received.map(({ id }) => id)
  const arrivalOf = (id: string) => arrivals.indexOf(id)
  assert.equal(
    rows.filter(({ id }) => arrivalOf(id) < 0).map(({ type, id }) => `${type} ${id}`),
    [],
    'events that have not arrived',
  )
  for (const about of Map.groupBy(rows, (row) => `${row.account_id} ${row.subject_id}`).values()) {
    const places = about.map(({ id }) => arrivalOf(id))
    assert.equal(
      places,
      places.toSorted((a, b) => a - b),
      `out of order: ${about.map(({ type }) => type).join(', ')}`,
    )
  }
  return countsOf(people, rows, 'account_id', 'type')
}
