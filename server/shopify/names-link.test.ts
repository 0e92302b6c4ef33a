// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { MalformedOrder } from './fields.ts'
import { mayNameLink } from './names-link.ts'
import { readOrderFacts } from './order-facts.ts'

const order = {
  id: 7,
  created_at: '2026-03-01T12:00:00Z',
  currency: 'PKR',
  cancelled_at: null,
  landing_site: '/products/kurta?utm_source=%D9%85&x=1',
  note_attributes: [{ name: 'gift', value: 'yes' }],
  discount_codes: [] as unknown[],
  line_items: [{ quantity: 1, price: '5' }],
}
const bodyWith = (changes: object) => JSON.stringify({ ...order, ...changes })
const may = (body: string) => mayNameLink(body, 'aff_ref')

test('an order that names nothing is passed over unread', () => {
  assert.not(may(bodyWith({})))
  assert.not(may(`${JSON.stringify(order, null, 2)}\n`))
  assert.not(may(bodyWith({ landing_site: '/\u0026x=<3>' }).replace('<', '\\u003c').replace('&', '\\u0026')))
})

test('references, codes and cancellations are not overlooked, in any spelling', () => {
  for (const changes of [
    { note_attributes: [{ name: 'aff_ref', value: 'x' }] },
    { line_items: [{ quantity: 1, price: '5', properties: [{ name: '_aff_ref', value: 'x' }] }] },
    { landing_site: '/?aff_ref=x' },
    { landing_site: '/?AFF-REF=x' },
    { note_attributes: [{ name: ' Aff Ref ', value: 'x' }] },
    { note: 'Landing page: https://kurta.pk/?aff_ref=x' },
    { discount_applications: [{ type: 'manual', title: 'SANA10' }] },
    { discount_applications: [{ type: 'discount_code', code: 'SANA10' }] },
    { landing_site: '/?aff%5Fref=x' },
    { landing_site: '/?%61ff_ref=x' },
    { discount_codes: [{ code: 'SANA10' }] },
    { cancelled_at: '2026-03-01T12:00:00Z' },
    { cancelled_at: 0 },
  ])
    assert.ok(may(bodyWith(changes)), JSON.stringify(changes))
  const attribute = { note_attributes: [{ name: 'aff_ref', value: 'x' }] }
  assert.ok(may(bodyWith(attribute).replace('aff_ref', 'aff\\u005fref')))
  const coupon = bodyWith({ discount_codes: [{ code: 'SANA10' }] })
  assert.ok(may(coupon.replace('"discount_codes"', '"discount\\u005Fcodes"')))
})

test('what does not look like an order is read', () => {
  for (const body of ['', '{', '[]', '{"id":7}', '{"line_items":[]}', ` ${bodyWith({})}`, `${bodyWith({})},`])
    assert.ok(may(body), body)
})

test('no body is passed over that says something', () => {
  const text = fc.oneof(
    fc.string(),
    fc.constantFrom('aff_ref', '_aff_ref', '?aff_ref=1', '/?aff%5fref=1', 'SANA10', 'x'),
  )
  const list = fc.array(fc.record({ name: text, value: text, code: text }), { maxLength: 2 })
  const changes = fc.record({
    landing_site: text,
    note_attributes: list,
    discount_codes: list,
    cancelled_at: fc.constantFrom(null, '2026-03-01T12:00:00Z', false),
  })
  fc.assert(
    fc.property(changes, (some) => {
      const body = bodyWith(some)
      if (may(body)) return
      try {
        const { references, discount_codes, cancelled } = readOrderFacts(body, 'aff_ref')
        assert.equal([references, discount_codes, cancelled], [[], [], false])
      } catch (error) {
        assert.instance(error, MalformedOrder)
      }
    }),
    { numRuns: 1000 },
  )
})

test.run()
