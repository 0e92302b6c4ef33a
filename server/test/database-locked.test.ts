// database: none
// mostly waits

import BetterSqlite from 'better-sqlite3'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sqliteFileOf } from '../platform/config.ts'
import { cast, follow } from './testkit/outside-cast.ts'
import { assertMapped } from './testkit/pluck.ts'
import { columnsOf } from './testkit/rows.ts'
import { call, deliver, openServiceBed, registerMerchant } from './testkit/service-bed.ts'

const STORE = { domain: 'locked.myshopify.com', secret: 'shpss_0123456789abcdef' }
const OFFER = {
  title: 'Brass lamp',
  product_url: 'https://shop.pk/products/lamp?variant=7#top',
  category: 'Home',
  niche: 'Lamps',
  commission_rate: 12.5,
}

test('writes are refused, and visitors reach the shop, while another process keeps the SQLite file locked', async () => {
  const bed = await openServiceBed('sqlite')
  const { url, testDatabase, close } = bed
  const rival = new BetterSqlite(sqliteFileOf(testDatabase.url) ?? '')
  try {
    const token = await registerMerchant(url, STORE)
    const { slug } = await cast(bed)
    const offer = () => call(url, 'POST', '/offers', { token, body: OFFER })
    rival.exec('begin exclusive')
    for (const answer of await Promise.all(Array.from({ length: 8 }, offer))) {
      assert.equal([answer.status, answer.body.code], [503, 'unavailable'])
      assert.ok(Number(answer.headers.get('retry-after')) >= 1)
    }
    const refused = await deliver(url, STORE, '1')
    assert.equal([refused.status, refused.body.code], [503, 'unavailable'])
    const visit = await call(url, 'GET', `/Go/${slug}?utm_source=tiktok`)
    const page = 'https://shop.pk/products/lamp?variant=7&utm_source=tiktok#top'
    assert.equal([visit.status, visit.headers.get('location')], [302, page])
    rival.exec('rollback')
    await follow(bed, slug)
    assert.is((await deliver(url, STORE, '1')).status, 200)
    assert.equal(await columnsOf(testDatabase, 'inbound_events', ['delivery_id']), [{ delivery_id: '1' }])
    const answers = await Promise.all([offer(), offer(), offer()])
    assertMapped(answers, ({ status, body }) => [status, body.code], Array(3).fill([201, undefined]))
  } finally {
    rival.close()
    await close()
  }
})

test.run()
