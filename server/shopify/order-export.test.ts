// database: none
import { Readable } from 'node:stream'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { pluckAll } from '../test/testkit/pluck.ts'
import { type ExportedOrder, readOrderExport, UnreadableExport } from './order-export.ts'

const HEAD =
  'Name,Email,Financial Status,Paid at,Currency,Subtotal,Created at,Lineitem quantity,Lineitem name,Cancelled at,Id'
const row = (name: string, id: string, { status = 'paid', subtotal = '4999.00', cancelled = '' } = {}) =>
  `${name},b@example.com,${status},2026-11-20 18:00:00 +0500,PKR,${subtotal},2026-11-20 17:30:00 +0500,1,"Kurta, 3 piece",${cancelled},${id}`
const furtherLine = (name: string) => `${name},,,,,,,2,"Shawl\n""Ravi""",,`

async function read(file: string | Uint8Array, chunk = 7): Promise<ExportedOrder[]> {
  const bytes = typeof file === 'string' ? Buffer.from(file) : Buffer.from(file)
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunk) }, (_, at) =>
    bytes.subarray(at * chunk, (at + 1) * chunk),
  )
  const orders: ExportedOrder[] = []
  for await (const order of readOrderExport(Readable.from(chunks))) orders.push(order)
  return orders
}

const it = suite('the order export of Shopify')

it('is read order by order, also where an order spans rows and characters span chunks', async () => {
  const refunded = { status: 'Refunded', subtotal: '1.5.0', cancelled: '2026-11-21 10:00:00 +0500' }
  const file = [
    `\ufeff${HEAD}`,
    row('#1001', '820982911946154508'),
    furtherLine('#1001'),
    furtherLine('#1001'),
    row('#عام1002', '6200000000002', refunded),
    HEAD,
    row('#1003', ''),
    '',
  ].join('\r\n')
  const orders = await read(file)
  assert.equal(pluckAll(orders, 'name', 'id', 'subtotal', 'cancelled', 'financial_status'), [
    ['#1001', '820982911946154508', 499_900, false, 'paid'],
    ['#عام1002', '6200000000002', null, true, 'refunded'],
    ['#1003', null, 499_900, false, 'paid'],
  ])
  assert.is(orders[0]?.created_at, Date.parse('2026-11-20T12:30:00Z'))
  assert.is(orders[0]?.paid_at, Date.parse('2026-11-20T13:00:00Z'))
})

const BROKEN: [what: string, file: string | Uint8Array, message: RegExp][] = [
  ['an empty file', '', /is empty/],
  ['other columns', 'Order,Amount\n1,2\n', /columns are missing: Name, Financial Status, Currency/],
  ['semicolons', `${HEAD.replaceAll(',', ';')}\n`, /separated by semicolons/],
  ['UTF-16', Buffer.from(`\ufeff${HEAD}\n`, 'utf16le'), /encoded in UTF-16/],
  ['Latin-1', Buffer.from(`${HEAD}\n${row('#1', '1')}é\n`, 'latin1'), /not encoded in UTF-8/],
  ['UTF-8 that ends within a character', Buffer.from(`${HEAD}é`).subarray(0, -1), /not encoded in UTF-8/],
  ['a picture', Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0), /is no text/],
  ['a row with fewer cells', `${HEAD}\n#1001,x\n`, /Line 2 has another number of cells/],
  ['a quote that does not end', `${HEAD}\n"${'x'.repeat(1_100_000)}`, /Line \d+ is too long/],
  ['a script', '#!/bin/sh\nA="b"\n', /Line 2 is no CSV/],
  ['a quote within a cell', `${HEAD}\n${row('"#1"2', '1')}\n`, /Line 2 is no CSV/],
  [
    'ids that a spreadsheet program has rounded',
    `${HEAD}\n${row('#1001', '6.2E+12')}\n`,
    /Id of order #1001/,
  ],
]

for (const [what, file, message] of BROKEN) {
  it(`is refused with one line: ${what}`, async () => {
    const error = await read(file, 65_536).catch((thrown: Error) => thrown)
    assert.instance(error, UnreadableExport)
    assert.match((error as Error).message, message)
    assert.not.match((error as Error).message, /\n/)
  })
}

it('that cannot be read fails with the error of reading it', async () => {
  const failure = new TypeError('the stream broke')
  const broken = (async function* () {
    yield Buffer.from(`${HEAD}\n`)
    throw failure
  })()
  const orders = readOrderExport(broken)
  assert.is(await orders.next().catch((error: unknown) => error), failure)
})

it.run()
