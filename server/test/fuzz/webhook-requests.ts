import { readdirSync, readFileSync } from 'node:fs'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../../fixtures/fill-fixture.ts'
import { standardWebhooks } from '../../processor/signatures/choose-scheme.ts'
import { signShopifyBody } from '../../shopify/signature.ts'
import { SHAPES } from '../hostile/hostile-bodies.ts'
import { either, fc } from '../testkit/property.ts'
import type { Targets } from './fuzzed-service.ts'
import { badJson, badString, inject, injection } from './hostile.ts'
import type { FuzzRequest } from './requests.ts'

const FOLDER = new URL('../../../fixtures/store-sales/', import.meta.url)
const ORDERS = readdirSync(FOLDER).map((name) => readFileSync(new URL(name, FOLDER), 'utf8'))

/** Header texts that a socket lets through. */
const headerText = badString.map((text) =>
  text
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 1000)
    .trim(),
)

const anyBytes = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))

/** A real store's order that came from one of our clicks, with up to three things in it changed. */
function orderBytes({ clicks }: Targets): fc.Arbitrary<Buffer> {
  const order = fc
    .record({
      text: fc.constantFrom(...ORDERS),
      click: fc.constantFrom(...clicks),
      id: fc.bigInt({ min: 1n, max: 10n ** 15n }),
    })
    .map(({ text, click, id }) => {
      const values = {
        click,
        clickAt: Date.now(),
        creatorEmail: 'creator@example.com',
        productId: FIXTURE_PRODUCT_ID,
        coupon: 'SANA10',
      }
      return { ...JSON.parse(fillFixture(text, values)), id: Number(id) } as Record<string, unknown>
    })
  const looked = [
    ...['id', 'line_items', 'landing_site', 'note_attributes', 'created_at', 'currency', 'email', 'name'],
    ...['financial_status', 'cancelled_at', 'test', 'taxes_included'],
  ]
  const inSight = fc
    .tuple(order, fc.constantFrom(...looked), badJson)
    .map(([value, field, json]) =>
      JSON.stringify({ ...value, [field]: '\u0001' }).replace('"\\u0001"', () => json),
    )
  const inLine = fc.tuple(order, injection).map(([value, change]) => {
    const lines = inject(value.line_items ?? [], change)
    return JSON.stringify({ ...value, line_items: '\u0001' }).replace('"\\u0001"', () => lines || '[]')
  })
  return fc
    .oneof(
      order.map((value) => JSON.stringify(value)),
      inSight,
      inLine,
      fc.tuple(order, injection).map(([value, change]) => inject(value, change)),
      badJson,
    )
    .map((text) => Buffer.from(text))
}

/** The shapes that cost most, in a size that leaves time for other requests. */
const hostileBytes = fc.constantFrom(...Object.values(SHAPES)).map((shape) => shape(50_000))

/** Correctly signed, but for a few; what is in it is another matter. */
export function storeWebhook(targets: Targets): fc.Arbitrary<FuzzRequest> {
  const { store } = targets
  return fc
    .record({
      body: either([12, orderBytes(targets)], [2, anyBytes], [1, hostileBytes]),
      forged: either([12, fc.constant(null)], [1, headerText]),
      domain: either([12, fc.constant(store.domain)], [1, headerText]),
      topic: either(
        [8, fc.constant('orders/paid')],
        [4, fc.constantFrom('orders/create', 'orders/updated', 'orders/cancelled')],
        [1, headerText],
      ),
      delivery: either([4, fc.uuid()], [1, fc.constantFrom('once', '')], [1, headerText]),
      type: fc.constantFrom('application/json', 'application/json', 'text/plain', ''),
    })
    .map(({ body, forged, domain, topic, delivery, type }) => ({
      about: 'store webhook',
      method: 'POST',
      path: '/webhooks/store-sales',
      headers: {
        'x-shopify-shop-domain': domain,
        'x-shopify-topic': topic,
        'x-shopify-webhook-id': delivery,
        'x-shopify-hmac-sha256': forged ?? signShopifyBody(body, store.secret),
        ...(type && { 'content-type': type }),
      },
      body,
    }))
}

function processorEvent({ ids }: Targets): fc.Arbitrary<Record<string, unknown>> {
  const reference = fc.oneof(fc.constantFrom(...ids), fc.uuid(), fc.constantFrom('inv_1', 'po_1'))
  return fc.record({
    type: fc.constantFrom('billing.payment_confirmed', 'payout.confirmed', 'payout.failed', 'invoice.viewed'),
    data: fc.record(
      {
        invoice_id: reference,
        payment_reference: fc.constantFrom('pay_1', 'pay_2'),
        payout_id: reference,
        reference,
        amount: fc.constantFrom('1.00', '1000.00', '99999999999.99', '-1.00', '1e3'),
        currency: fc.constantFrom('PKR', 'PKR', 'USD'),
        reason: badString,
      },
      { requiredKeys: ['amount', 'currency'] },
    ),
  })
}

/** Correctly signed, but for a few; about invoices and payouts that are there and that are not. */
export function processorWebhook(targets: Targets): fc.Arbitrary<FuzzRequest> {
  const event = processorEvent(targets)
  const json = fc.oneof(
    event.map((value) => JSON.stringify(value)),
    fc.tuple(event, injection).map(([value, change]) => inject(value, change)),
    badJson,
  )
  return fc
    .record({
      body: either([12, json.map((text) => Buffer.from(text))], [2, anyBytes], [1, hostileBytes]),
      delivery: either([6, fc.uuid()], [1, fc.constantFrom('once')]),
      spoiled: either(
        [10, fc.constant({})],
        [
          1,
          fc
            .tuple(fc.constantFrom('webhook-id', 'webhook-timestamp', 'webhook-signature'), headerText)
            .map(([name, value]) => ({ [name]: value })),
        ],
      ),
    })
    .map(({ body, delivery, spoiled }) => ({
      about: 'processor webhook',
      method: 'POST',
      path: '/webhooks/processor',
      headers: {
        'content-type': 'application/json',
        ...standardWebhooks.sign({
          deliveryId: delivery,
          rawBody: body,
          secret: targets.processorSecret,
          now: Date.now(),
        }),
        ...spoiled,
      },
      body,
    }))
}
