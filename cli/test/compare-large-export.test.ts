// proof only
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { insertSales } from '../../server/sales/sales.store.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { rowOf } from '../../server/test/testkit/rows.ts'
import { openBooks } from './books.ts'
import { runAffiliate } from './run-affiliate.ts'

const ROWS = 100_000
/** Of the process with the database's driver: far less than the file and its orders need. */
const HEAP_MB = 96
const FIRST_ID = 6_300_000_000_000

/** 78 columns as in Shopify's own export: about 330 bytes a row. */
const COLUMNS = [
  ...['Name', 'Email', 'Financial Status', 'Paid at', 'Currency', 'Subtotal', 'Total', 'Created at'],
  ...['Lineitem quantity', 'Lineitem name', 'Lineitem price', 'Cancelled at', 'Notes', 'Id'],
  ...Array.from({ length: 64 }, (_, at) => `Column ${at}`),
]

async function writeExport(path: string, createdAt: number): Promise<void> {
  const file = createWriteStream(path)
  const time = `${new Date(createdAt).toISOString().slice(0, 19).replace('T', ' ')} +0000`
  const rest = Array.from({ length: 64 }, (_, at) => (at % 4 === 0 ? '"Gulberg, Lahore"' : ''))
  file.write(`${COLUMNS.join(',')}\n`)
  for (let row = 0; row < ROWS; row += 1) {
    const order = [`#${row}`, 'b@example.com', 'paid', time, 'PKR', '4999.00', '5199.00', time]
    const line = ['1', '"Kurta, 3 piece"', '4999.00', '', '"a\nnote"', FIRST_ID + row]
    if (!file.write(`${[...order, ...line, ...rest].join(',')}\n`)) {
      await once(file, 'drain')
    }
  }
  await finished(file.end())
}

for (const dialect of testDialects()) {
  const it = suite(`a large order export on ${dialect}`)

  it(`of ${ROWS} orders is compared in a small heap`, async () => {
    const books = await openBooks(dialect)
    const { platform } = books.market
    const saleOf = (order: string, storeId: string) =>
      rowOf(platform, 'sales', { order_name: order, store_id: storeId })
    const { storeId: store_id, merchantId: merchant_id } = books.shop
    const accepted = await saleOf('#1001', store_id)
    const rejected = { ...(await saleOf('#1001', books.otherShop.storeId)), store_id, merchant_id }
    // Of ten orders one was never reported, and two were accepted.
    for (let from = 0; from < ROWS; from += 1000) {
      const rows = Array.from({ length: 1000 }, (_, at) => from + at)
        .filter((number) => number % 10 !== 0)
        .map((number) => ({
          ...(number % 5 === 1 ? accepted : rejected),
          id: platform.ids.next(),
          order_id: String(FIRST_ID + number),
        }))
      await platform.database.transaction((tx) => insertSales(tx, rows))
    }
    const path = `${books.market.bed.testDatabase.folder}/orders_export.csv`
    await writeExport(path, Date.now() + 60_000)
    const { code, stdout, stderr } = await runAffiliate(
      ['stores', 'compare', `s${books.shop.merchantId}.myshopify.com`, path, '--json', '--limit', '10'],
      { environment: { ...books.settings, NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}` } },
    )
    assert.is(code, 0, stderr)
    const found = JSON.parse(stdout)
    assert.equal([found.orders, found.never_reported.count], [ROWS, ROWS / 10])
    assert.equal([found.accepted, found.other_amounts.count], [(ROWS / 10) * 2, 0])
    assert.equal(found.rejected.reasons, { no_tracking_reference: (ROWS / 10) * 7 })
    console.log(`\nsize: ${dialect}, ${ROWS} orders with a heap of ${HEAP_MB} MB`)
    await books.market.close()
  })

  it.run()
}
