import { readFileSync } from 'node:fs'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../fixtures/fill-fixture.ts'

const TEMPLATE = readFileSync(
  new URL('../../fixtures/store-sales/path-landing-site.json', import.meta.url),
  'utf8',
)
/** The fixture's own id and name; each order gets others. */
const ORDER_ID = /"id": ?(\d{10,}),/.exec(TEMPLATE)?.[1] ?? ''

/** An order as a store sends it, 8 KB with everything in it, paid and placed after its click. */
export function storeOrder(number: number, click: string, clickAt: number): string {
  const text = fillFixture(TEMPLATE, {
    click,
    clickAt,
    creatorEmail: 'creator@example.com',
    productId: FIXTURE_PRODUCT_ID,
  })
  return text.replaceAll(ORDER_ID, String(6_200_000_000_000 + number))
}
