import { readFileSync } from 'node:fs'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../fixtures/fill-fixture.ts'

const TEMPLATE = readFileSync(
  new URL('../../fixtures/store-sales/path-landing-site.json', import.meta.url),
  'utf8',
)
const NO_CODES = /"discount_codes": ?\[\s*\]/
/** The fixture's own id and name; each order gets others. */
const ORDER_ID = /"id": ?(\d{10,}),/.exec(TEMPLATE)?.[1] ?? ''

/** The coupon code of a link that each order whose number ends in 0, 3 or 6 carries. */
export const BENCH_CODE = 'BENCH10'

/** An order as a store sends it, 8 KB with everything in it, paid and placed after its click; three in ten have a coupon code. */
export function storeOrder(number: number, click: string, clickAt: number): string {
  const text = fillFixture(TEMPLATE, {
    click,
    clickAt,
    creatorEmail: 'creator@example.com',
    productId: FIXTURE_PRODUCT_ID,
  })
  const order = text.replaceAll(ORDER_ID, String(6_200_000_000_000 + number))
  if (![0, 3, 6].includes(number % 10)) return order
  return order.replace(
    NO_CODES,
    `"discount_codes": [{ "code": "${BENCH_CODE}", "amount": "0.00", "type": "percentage" }]`,
  )
}
