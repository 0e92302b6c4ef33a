import * as assert from 'uvu/assert'
import type { Database } from '../../platform/database/database.ts'
import type { Sandbox } from '../../processor/sandbox/start-sandbox.ts'
import { rowsOf } from '../testkit/rows.ts'

export interface Cast {
  merchantId: string
  storeId: string
  creators: Record<string, string>
}

type Held = ReturnType<Sandbox['state']>

/** What the outside world has seen of the server. */
export interface Outside {
  held: Pick<Held, 'invoices' | 'payouts'>
  /** Webhooks, in the order of their arrival. */
  webhooks: readonly { id: string }[]
  mails: readonly { id: string }[]
}

/** The result of one round, without ids and times: the same whatever happened to the server. Lists are sorted. */
export type Figures = Record<string, string[]>

export async function readFigures(database: Database, outside: Outside, cast: Cast): Promise<Figures> {
  const nameOf = new Map(
    Object.entries({ ...cast.creators, merchant: cast.merchantId }).map(([a, b]) => [b, a]),
  )
  const read = { database }
  const sales = await rowsOf(read, 'sales', { merchant_id: cast.merchantId })
  const cycles = await rowsOf(read, 'billing_cycles', { merchant_id: cast.merchantId })
  const payouts = (await rowsOf(read, 'payouts')).filter(({ creator_id }) => nameOf.has(creator_id))
  const deliveries = await rowsOf(read, 'inbound_events', { scope: cast.storeId })
  const postings = (await rowsOf(read, 'ledger_postings', {}, 'entry_id')).filter(({ owner_id }) =>
    nameOf.has(owner_id),
  )
  const balances = [
    ...Map.groupBy(postings, ({ account, owner_id }) => `${account} of ${nameOf.get(owner_id)}`),
  ]
  const there = (items: Held['invoices'], own: { id: string }[]) =>
    items
      .filter(({ reference }) => own.some(({ id }) => id === reference))
      .map(({ amount, status }) => `${amount} ${status}`)
  const figures: Figures = {
    sales: sales.map(
      (row) => `${row.net_amount} ${row.acceptance_status} ${row.commission} ${row.platform_fee}`,
    ),
    cycles: cycles.map(
      (row) => `${row.state} ${row.sales_count} ${row.commission_total} ${row.fee_total} ${row.amount_due}`,
    ),
    payouts: payouts.map((row) => `${nameOf.get(row.creator_id)} ${row.state} ${row.amount}`),
    deliveries: deliveries.map(({ state }) => state),
    balances: balances.map(([name, all]) => `${name}: ${all.reduce((sum, { amount }) => sum + amount, 0)}`),
    'invoices there': there(outside.held.invoices, cycles),
    'payouts there': there(outside.held.payouts, payouts),
    notices: await readNotices(database, outside.webhooks, nameOf),
    mails: await readMails(database, outside.mails, nameOf),
  }
  return Object.fromEntries(Object.entries(figures).map(([what, lines]) => [what, lines.sort()]))
}

/**
 * The different events that have arrived for each of a round's people. Fails for an event that has not arrived, and for one that first
 * arrived before an earlier one about its subject.
 */
async function readNotices(
  database: Database,
  received: Outside['webhooks'],
  nameOf: ReadonlyMap<string, string>,
): Promise<string[]> {
  const rows = (await rowsOf({ database }, 'outbox_events', {}, 'sequence')).filter((row) =>
    nameOf.has(row.account_id),
  )
  const arrivals = received.map(({ id }) => id)
  const late = rows.filter(({ id }) => !arrivals.includes(id)).map(({ type, id }) => `${type} ${id}`)
  assert.equal(late, [], 'events that have not arrived')
  for (const about of Map.groupBy(rows, (row) => `${row.account_id} ${row.subject_id}`).values()) {
    const places = about.map(({ id }) => arrivals.indexOf(id))
    const types = about.map(({ type }) => type).join(', ')
    assert.equal(
      places,
      places.toSorted((a, b) => a - b),
      `out of order: ${types}`,
    )
  }
  return rows.map(({ account_id, type }) => `${nameOf.get(account_id)}: ${type}`)
}

/** The mails to each of a round's people. Fails for one that has not arrived. */
async function readMails(
  database: Database,
  arrived: Outside['mails'],
  nameOf: ReadonlyMap<string, string>,
): Promise<string[]> {
  const rows = (await rowsOf({ database }, 'mails')).filter(({ user_id }) => nameOf.has(user_id))
  const late = rows.filter((row) => row.state !== 'sent' || !arrived.some(({ id }) => id === row.id))
  assert.equal(late, [], 'mails that have not arrived')
  return rows.map(({ user_id, kind }) => `${nameOf.get(user_id)}: ${kind}`)
}
