import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readOrderFacts } from '../shopify/order-facts.ts'
import type { OrderLine } from '../shopify/order-lines.ts'
import { hasBuyerName, isBuyer, saleOrderOf, withKnownProducts } from './sale-facts.ts'

const CLICK = '0197a3c0-5b1e-7d42-9c3f-2a64d1f0b8e7'

function order(reference: string | null) {
  const person = { email: 'buyer@example.com', first_name: 'Bushra', phone: '+923001234567' }
  const body = {
    id: 1,
    name: '#1',
    created_at: '2026-03-01T12:00:00Z',
    currency: 'PKR',
    ...person,
    customer: person,
    shipping_address: { ...person, address1: 'House 12' },
    note: 'for Bushra',
    note_attributes: [{ name: 'for', value: 'Bushra' }],
    landing_site: reference === null ? null : `/x?aff_ref=${reference}`,
    line_items: [
      { title: 'Shawl', quantity: 1, price: '1.00', properties: [{ name: 'for', value: 'Bushra' }] },
    ],
  }
  return readOrderFacts(JSON.stringify(body), 'aff_ref')
}

test('nothing of the buyer is kept', () => {
  const kept = JSON.stringify(saleOrderOf(order(CLICK)))
  assert.not.match(kept, /buyer@|bushra|3001234567|house/i)
})

test('only what can be a click id is kept of the tracking reference', () => {
  const tracking = (reference: string | null) => {
    const { tracking_reference, tracking_source } = saleOrderOf(order(reference))
    return [tracking_reference, tracking_source]
  }
  assert.equal(tracking(CLICK), [CLICK, 'landing_site'])
  assert.equal(tracking(CLICK.toUpperCase()), [CLICK, 'landing_site'])
  assert.equal(tracking(null), [null, null])
  const almost = [`${CLICK}0`, CLICK.replace('-7', '-4'), CLICK.replace('-9', '-c'), `${CLICK}%0Aelse`]
  for (const other of ['bushra', ...almost]) assert.equal(tracking(other), [null, 'landing_site'], other)
})

test('the buyer is the creator when the addresses are the same, or reach one mailbox', () => {
  for (const [buyers, creator, same] of [
    [['buyer@example.com'], ' Buyer@Example.com', true],
    [['sana.mirza+kurta@googlemail.com'], 'SanaMirza@gmail.com', true],
    [['sana+1@example.pk'], 'sana+2@example.pk', true],
    [['other@example.pk', 'Sana@example.pk'], 'sana@example.pk', true],
    [['buyer@example.com'], 'other@example.com', false],
    [['sana.mirza@example.pk'], 'sanamirza@example.pk', false],
    [['buyer@example.com'], null, false],
    [[], null, false],
    [[], '', false],
  ] as const)
    assert.is(isBuyer({ ...order(null), buyer_emails: [...buyers] }, creator), same, `${buyers} ${creator}`)
})

test('a buyer has the name of a payout account whatever its case, spacing and punctuation', () => {
  const named = (...buyer_names: string[]) => ({ ...order(null), buyer_names })
  assert.ok(hasBuyerName(named('Someone', ' sana  MIRZA.'), ['Sana Mirza']))
  assert.ok(hasBuyerName(named('ثنا مرزا'), ['ثنا مرزا']))
  assert.not.ok(hasBuyerName(named('Sana Mirza Khan'), ['Sana Mirza']))
  assert.not.ok(hasBuyerName(named('', '-'), ['', '.']))
  assert.not.ok(hasBuyerName(named(), ['Sana Mirza']))
})

test('a deleted product is the one of an earlier report, unless another line still names that', () => {
  const line = (product_id: string | null, title = 'Kurta') => {
    const unknown = product_id === null && { product_unknown: true }
    return { product_id, title, unit_price: 80_000, ...unknown } as OrderLine
  }
  const ids = (now: OrderLine[], earlier: OrderLine[]) =>
    withKnownProducts(now, earlier).map(({ product_id }) => product_id)
  assert.equal(ids([line(null)], [line('1')]), ['1'])
  assert.equal(ids([line(null)], [line('1', 'Shawl')]), [null])
  assert.equal(ids([line(null)], [line('1'), line('2')]), [null])
  assert.equal(ids([line(null), line('1')], [line(null), line('1')]), [null, '1'])
  assert.equal(ids([line(null), line('1')], [line('2'), line('1')]), ['2', '1'])
})

test.run()
