// database: none
// mostly waits

import BetterSqlite from 'better-sqlite3'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sqliteFileOf } from '../platform/config.ts'
import { call, openServiceBed, registerMerchant } from './testkit/service-bed.ts'

const OFFER = {
  title: 'Brass lamp',
  product_url: 'https://shop.pk/products/lamp?variant=7#top',
  category: 'Home',
  niche: 'Lamps',
  commission_rate: 12.5,
}

test('writes are refused while another process keeps the SQLite file locked', async () => {
  const { url, testDatabase, close } = await openServiceBed('sqlite')
  const rival = new BetterSqlite(sqliteFileOf(testDatabase.url) ?? '')
  try {
    const token = await registerMerchant(url)
    const offer = () => call(url, 'POST', '/offers', { token, body: OFFER })
    rival.exec('begin exclusive')
    for (const answer of await Promise.all(Array.from({ length: 8 }, offer))) {
      assert.equal([answer.status, answer.body.code], [503, 'unavailable'])
      assert.ok(Number(answer.headers.get('retry-after')) >= 1)
    }
    rival.exec('rollback')
    const answers = await Promise.all([offer(), offer(), offer()])
    assert.equal(
      answers.map(({ status, body }) => [status, body.code]),
      Array(3).fill([201, undefined]),
    )
  } finally {
    rival.close()
    await close()
  }
})

test.run()
