// long
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import { type TestDatabaseOptions, type TestDialect, testDialects } from './testkit/databases.ts'
import { eventually } from './testkit/eventually.ts'
import { verify } from './testkit/marketplace.ts'
import { type OrderChanges, orderBody } from './testkit/orders.ts'
import { type Cast, cast, follow, report } from './testkit/outside-cast.ts'
import { call, openServiceBed, type ServiceBed } from './testkit/service-bed.ts'
import { AS_SERVICE_ROLE } from './testkit/service-role.ts'

const YEAR_MS = 366 * 86_400_000
/** An order of now. */
const orderOf = (changes: Omit<OrderChanges, 'createdAt'>) => orderBody({ createdAt: Date.now(), ...changes })

/** A database, and how it is opened. */
const WORLDS: [TestDialect, where: string, TestDatabaseOptions][] = [
  ['sqlite', 'sqlite', {}],
  ['postgresql', 'postgresql, as a role that owns nothing', AS_SERVICE_ROLE],
]

for (const [dialect, where, options] of WORLDS.filter(([one]) => testDialects().includes(one))) {
  const it = suite<{ bed: ServiceBed; cast: Cast }>(`from order to payout on ${where}`)

  it.before(async (context) => {
    context.bed = await openServiceBed(dialect, {}, options)
    context.cast = await cast(context.bed)
  })
  it.after(async ({ bed }) => {
    await bed.close()
  })

  it('turns a signed order into a sale with the right commission, seen by both', async ({ bed, cast }) => {
    const reference = await follow(bed, cast.slug)
    // An id above 2^53 must come back digit for digit.
    const orderId = '820982911946154508'
    const sent = await report(bed, orderOf({ id: orderId, click: reference, price: 2_499_999 }), 'first')
    assert.equal([sent.status, sent.body], [200, { received: true }])
    const sales = await eventually(
      () => call(bed.url, 'GET', '/sales', { token: cast.merchant }),
      (answer) => answer.body.items.length === 1,
    )
    const [sale] = sales.body.items
    assert.is(sale.acceptance_status, 'accepted', JSON.stringify(sale))
    assert.is(sale.order_id, orderId)
    // 24,999.99 × 12.5 % = 3,124.99875, half up; 10 % of that is 312.50.
    assert.equal([sale.net_amount, sale.commission, sale.platform_fee], ['24999.99', '3125.00', '312.50'])
    const seen = await call(bed.url, 'GET', `/sales/${sale.id}`, { token: cast.creator })
    assert.is(seen.body.commission, '3125.00')
    assert.not.ok('platform_fee' in seen.body)
    const saw = Object.fromEntries(
      seen.body.receipt.checks.map((check: { name: string; saw: object }) => [check.name, check.saw]),
    )
    assert.equal(saw.nothing_payable, { net_amount: '24999.99', commission: '3125.00' })
    assert.match(saw.click_after_order.clicked_at, /^\d{4}-\d\d-\d\dT.*Z$/)
    assert.ok(seen.body.receipt.checks.every((check: { verdict: string }) => check.verdict !== 'failed'))
    assert.not.match(JSON.stringify(seen.body), 'bushra.buyer@example.com')
  })

  it('makes one sale of an order, however often and under any id it is reported', async ({ bed, cast }) => {
    const body = orderOf({ id: '5001', click: await follow(bed, cast.slug), price: 10_000 })
    // The topic is not signed: without it, or in capitals, it is the same order.
    await report(bed, body, 'bare', null)
    await report(bed, body, 'loud', 'ORDERS/PAID')
    await Promise.all(['a', 'a', 'b', 'b', 'c'].map((id) => report(bed, body, id)))
    const { reader } = bed.service.app.platform.database
    await eventually(
      () => reader.selectFrom('inbound_events').select('id').where('state', '=', 'pending').execute(),
      (pending) => pending.length === 0,
    )
    const sales = await call(bed.url, 'GET', '/sales', { token: cast.merchant })
    assert.is(sales.body.items.filter((sale: { order_id: string }) => sale.order_id === '5001').length, 1)
  })

  it('closes the cycle, is paid, fails a payout, and pays it with the next', async ({ bed, cast }) => {
    const { app, sandboxUrl = '' } = bed.service
    const switches = { token: app.sandbox?.api_key, body: { event_delay_ms: 10, fail_next_payouts: 1 } }
    assert.is((await call(`${sandboxUrl}`, 'PUT', '/_sandbox/switches', switches)).status, 200)
    const [closed] = await closeDueCycles(app.platform, { asOf: Date.now() + YEAR_MS })
    // 3,125.00 + 312.50, and of the second order 12.50 + 1.25
    assert.is(closed?.amountDue, 345_125)
    const cycles = await eventually(
      () => call(bed.url, 'GET', '/billing-cycles', { token: cast.merchant }),
      (answer) => answer.body.items[0].state === 'charged',
    )
    assert.is(cycles.body.items[0].amount_due, '3451.25')
    assert.ok(cycles.body.items[0].processor_invoice_id)
    assert.ok(cycles.body.items[0].processor_payment_reference)

    await runPayouts(app.platform, app.processor)
    const failed = await eventually(
      () => call(bed.url, 'GET', '/payouts', { token: cast.creator }),
      (answer) => answer.body.items[0]?.state === 'failed',
    )
    assert.ok(failed.body.items[0].failure_reason)
    const balance = (await call(bed.url, 'GET', '/me', { token: cast.creator })).body.balance
    assert.equal([balance.released, balance.in_transit, balance.paid], ['3137.50', '0.00', '0.00'])

    await runPayouts(app.platform, app.processor)
    await eventually(
      () => call(bed.url, 'GET', '/payouts?state=paid', { token: cast.creator }),
      (answer) => answer.body.items.length === 1,
    )
    const paid = (await call(bed.url, 'GET', '/me', { token: cast.creator })).body.balance
    assert.equal([paid.released, paid.in_transit, paid.paid], ['0.00', '0.00', '3137.50'])
    const parts = await call(bed.url, 'GET', '/payouts?state=paid', { token: cast.merchant })
    assert.is(parts.body.items[0].amount, '3137.50')
    assert.not.ok('processor_payout_id' in parts.body.items[0])
  })

  it('leaves books in which every invariant holds', async ({ bed }) => {
    await verify(bed.service.app.platform)
  })

  it.run()
}
