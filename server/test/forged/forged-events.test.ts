import { randomUUID } from 'node:crypto'
import * as assert from 'uvu/assert'
import { formatMoney } from '../../../shared/money.ts'
import { bodyToSend, type EventRow, retryEvent } from '../../inbox/events.service.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import { sha256 } from '../../platform/crypto/vault.ts'
import { reprocessOrders } from '../../sales/reprocess.service.ts'
import { marketSuites } from '../testkit/market-suites.ts'
import {
  brokenInvariants,
  brokenRows,
  closeOpenCycle,
  cyclesOf,
  eventsOf,
  type Marketplace,
  openFlagsOf,
  type Shop,
} from '../testkit/marketplace.ts'
import { orderBody } from '../testkit/orders.ts'
import { outcomeOf } from '../testkit/people.ts'
import { pluck } from '../testkit/pluck.ts'
import { rowOf, rowsOf } from '../testkit/rows.ts'
import { writeWithoutKey } from '../testkit/tamper.ts'

const FLAG = 'integrity_violation inbound_events'

interface Context {
  shop: Shop
  other: Shop
  link: LinkRecord
}

for (const { it } of marketSuites<Context>('events that a database writer forges')) {
  it.before.each(async (context) => {
    const { market } = context
    context.shop = await market.addShop('shop')
    context.other = await market.addShop('other')
    context.link = await market.addLink(context.shop, await market.addCreator())
  })

  const writer = (market: Marketplace) => market.bed.testDatabase.database.writer
  const write = (market: Marketplace, ...statements: string[]) =>
    writeWithoutKey(market.bed.testDatabase.database, ...statements)

  /** Adds a pending event as the inbox holds one, without the key. Returns its id. */
  const insert = async (
    market: Marketplace,
    event: { source: 'store' | 'processor'; scope: string; body: string; digest?: string | undefined },
  ): Promise<string> => {
    const id = market.platform.ids.next()
    const now = market.clock.now()
    const row = {
      ...{ id, source: event.source, scope: event.scope, delivery_id: randomUUID(), conflict_hash: '' },
      ...{ body_hash: sha256(event.body), topic: event.source === 'store' ? 'orders/paid' : null },
      ...{ received_at: now, triggered_at: null, row_digest: event.digest ?? '', state: 'pending' as const },
      ...{ attempts: 0, next_attempt_at: now, lease_token: null, lease_until: 0, finished_at: null },
      ...{ reason: null, result: null },
    }
    await writer(market).insertInto('inbound_events').values(row).execute()
    const body = { event_id: id, encoding: 'utf8' as const, body: event.body }
    await writer(market).insertInto('inbound_bodies').values(body).execute()
    return id
  }

  const order = async (market: Marketplace, link: LinkRecord) =>
    orderBody({ price: 400_000, click: await market.click(link), createdAt: market.clock.now() })

  const ofStore = ({ storeId }: Shop) => ({ source: 'store', scope: storeId }) as const

  const count = async (market: Marketplace, table: 'sales' | 'ledger_entries') =>
    (await rowsOf(market.platform, table)).length

  const stateOf = async (market: Marketplace, id: string) => {
    const [event] = await rowsOf(market.platform, 'inbound_events', { id })
    return [event?.state, event?.reason]
  }

  it('books no order that was added to the inbox, but the next one', async ({ market, shop, link }) => {
    await market.order(shop, link, 100_000)
    const [honest] = await eventsOf(market.platform)
    const forged: string[] = []
    for (const digest of ['', honest?.row_digest])
      forged.push(await insert(market, { ...ofStore(shop), body: await order(market, link), digest }))
    await market.order(shop, link, 100_000)
    await market.drainUntilIdle()
    assert.is(await count(market, 'sales'), 2)
    for (const id of forged) assert.equal(await stateOf(market, id), ['set_aside', 'integrity_violation'])
    assert.equal(await openFlagsOf(market.platform), [FLAG])
    assert.equal(
      await brokenRows(market.platform, 'rows-authentic-inbound-events'),
      forged.map((id) => `inbound_events ${id}`),
    )
  })

  it('charges no cycle for a confirmation that was added to the inbox', async ({ market, shop, link }) => {
    await market.order(shop, link, 400_000)
    await market.drainUntilIdle()
    await closeOpenCycle(market.platform, shop)
    await market.drainUntilIdle()
    const [cycle] = await cyclesOf(market.platform, shop.merchantId)
    const data = { invoice_id: cycle?.processor_invoice_id, payment_reference: 'p', currency: 'PKR' }
    const amount = formatMoney(cycle?.amount_due ?? 0)
    const body = JSON.stringify({ type: 'billing.payment_confirmed', data: { ...data, amount } })
    const id = await insert(market, { source: 'processor', scope: 'processor', body })
    await market.drainUntilIdle()
    assert.equal(await stateOf(market, id), ['set_aside', 'integrity_violation'])
    assert.equal(pluck(await cyclesOf(market.platform, shop.merchantId), 'state'), ['closed'])
    assert.equal(await openFlagsOf(market.platform), [FLAG])
  })

  type Change = (world: { other: Shop; body: string }) => Partial<EventRow> & { body?: string }
  const CHANGES: Record<string, Change> = {
    'another store': ({ other }) => ({ scope: other.storeId }),
    'another id': () => ({ id: randomUUID() }),
    'another body and its hash': ({ body }) => ({ body, body_hash: sha256(body) }),
    'another body': ({ body }) => ({ body }),
  }
  for (const [what, changesOf] of Object.entries(CHANGES)) {
    it(`refuses an event with ${what}`, async ({ market, shop, other, link }) => {
      await market.order(shop, link, 100_000)
      const [event] = await eventsOf(market.platform)
      assert.ok(event)
      const genuine = await rowOf(market.platform, 'inbound_bodies', {}, 'event_id')
      await write(market, 'delete from inbound_bodies', 'delete from inbound_events')
      const { body = genuine.body, ...changes } = changesOf({ other, body: await order(market, link) })
      const changed = { ...event, ...changes }
      await writer(market).insertInto('inbound_events').values(changed).execute()
      const changedBody = { ...genuine, event_id: changed.id, body }
      await writer(market).insertInto('inbound_bodies').values(changedBody).execute()
      await market.drainUntilIdle()
      assert.is(await count(market, 'sales'), 0)
      assert.equal(await stateOf(market, changed.id), ['set_aside', 'integrity_violation'])
      assert.equal(await openFlagsOf(market.platform), [FLAG])
    })
  }

  it('is not retried, not sent again and not decided again', async ({ market, shop, link }) => {
    const { platform } = market
    const id = await insert(market, { ...ofStore(shop), body: await order(market, link) })
    await market.drainUntilIdle()
    assert.is(await outcomeOf(retryEvent(platform, id, null)), 'conflict')
    const [event] = await eventsOf(platform)
    assert.ok(event)
    assert.is(await outcomeOf(bodyToSend(platform, event)), 'conflict')
    const report = await reprocessOrders(platform, {
      onDifference: () => assert.unreachable('a forged event would make no sale'),
    })
    assert.equal([report.counts.forged, report.counts.judged], [1, 0])
  })

  it('moves nothing again when applied events are made pending', async ({ market, shop, link }) => {
    await market.earn(shop, link, 400_000)
    const before = [await count(market, 'sales'), await count(market, 'ledger_entries')]
    await write(market, "update inbound_events set state = 'pending', result = null, finished_at = null")
    await market.drainUntilIdle()
    assert.equal([await count(market, 'sales'), await count(market, 'ledger_entries')], before)
    const broken = Object.keys(await brokenInvariants(market.platform))
    assert.equal(broken.toSorted(), ['events-applied', 'rows-complete-inbound-events', 'settled-by-events'])
  })

  it.run()
}
