// database: none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Marketplace, openMarketplace, type Shop } from '../proof/testbed/marketplace.ts'
import { createInboxRecorder } from './intake.service.ts'

const it = suite<{ market: Marketplace; shop: Shop }>('the way into the inbox on sqlite')
it.before.each(async (context) => {
  context.market = await openMarketplace('sqlite')
  context.shop = await context.market.addShop()
})
it.after.each(({ market }) => market.close())

it('writes together what comes in one turn of the loop after the other, as new connections do', async ({
  market: { platform },
  shop,
}) => {
  const { database } = platform
  const sizes: number[] = []
  const recorder = createInboxRecorder({
    ...platform,
    database: {
      ...database,
      writeAtOnce(...statements) {
        sizes.push((statements[0] as unknown as { rows: unknown[] }).rows.length)
        return database.writeAtOnce(...statements)
      },
    },
  })
  const receipts: Promise<unknown>[] = []
  for (let turn = 0; turn < 14; turn += 1) {
    const event = { source: 'store', scope: shop.storeId, topic: null, rawBody: Buffer.from('{}') } as const
    receipts.push(recorder.record({ ...event, deliveryId: String(turn) }))
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(await Promise.all(receipts), Array(14).fill('stored'))
  assert.ok((sizes[0] ?? 0) >= 10, `${sizes.join(', ')} in a write`)
})

it.run()
