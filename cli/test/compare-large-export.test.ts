import * as assert from 'uvu/assert'
import { compareOrders } from '../../server/sales/compare-orders.service.ts'
import { readOrderExport } from '../../server/shopify/order-export.ts'
import { suiteOverBooks } from './books.ts'

const ROWS = 10_000
/** Orders that are compared together. */
const PAGE = 1000
const FIRST_ID = 6_300_000_000_000

const { it, books } = suiteOverBooks('a large order export')

it('is read no further ahead than it is compared, so that it needs no more memory than a small one', async () => {
  const time = `${new Date(Date.now() + 60_000).toISOString().slice(0, 19).replace('T', ' ')} +0000`
  let written = 0
  async function* file(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('Name,Financial Status,Paid at,Currency,Subtotal,Created at,Lineitem name,Id\n')
    for (; written < ROWS; written += 1)
      yield Buffer.from(
        `#${written},paid,${time},PKR,4999.00,${time},"Kurta, 3 piece",${FIRST_ID + written}\n`,
      )
  }
  const ahead: number[] = []
  const found = await compareOrders(books.market.platform, readOrderExport(file()), {
    store: `s${books.shop.merchantId}.myshopify.com`,
    limit: 10,
    all: true,
    progress: (orders) => ahead.push(written - orders),
  })
  const { count, items } = found.never_reported
  assert.equal([found.orders, count, items.length, ahead.length], [ROWS, ROWS, 10, ROWS / PAGE])
  assert.ok(Math.max(...ahead) < 2 * PAGE, `${ahead} rows ahead`)
})

it.run()
