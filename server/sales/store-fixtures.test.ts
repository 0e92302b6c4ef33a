import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../fixtures/fill-fixture.ts'

const FIXTURES = new URL('../../fixtures/', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, FIXTURES), 'utf8')
const manifest: { file: string; order_id: string; order_name: string }[] = JSON.parse(
  read('store-sales.manifest.json'),
)

const values = {
  click: '0197a3c0-5b1e-7d42-9c3f-2a64d1f0b8e7',
  clickAt: Date.UTC(2026, 1, 28, 19, 30, 15, 250),
  creatorEmail: 'Sana.Creates@example.com',
  productId: FIXTURE_PRODUCT_ID,
  coupon: 'SANA10',
}

test('the manifest names each fixture once, each order differs, and every fixture is JSON before it is filled', () => {
  const files = readdirSync(new URL('store-sales/', FIXTURES)).toSorted()
  assert.equal(manifest.map((entry) => entry.file).toSorted(), files)
  assert.is(new Set(manifest.map((entry) => entry.order_id)).size, manifest.length)
  assert.is(new Set(manifest.map((entry) => entry.order_name)).size, manifest.length)
  for (const file of files) JSON.parse(read(`store-sales/${file}`))
})

test('placeholders are filled with times of the shop, bare product numbers and escaped text', () => {
  const text =
    '{"at":["{{at:+90m}}","{{at:-10m}}","{{at:+20d}}","{{at:+0s}}"],"p":"{{product_id}}","e":"{{creator_email}}"}'
  assert.equal(JSON.parse(fillFixture(text, { ...values, creatorEmail: '"odd\\"@example.com' })), {
    at: [
      '2026-03-01T02:00:15+05:00',
      '2026-03-01T00:20:15+05:00',
      '2026-03-21T00:30:15+05:00',
      '2026-03-01T00:30:15+05:00',
    ],
    p: Number(FIXTURE_PRODUCT_ID),
    e: '"odd\\"@example.com',
  })
})

test('an unknown, broken or unfilled placeholder is refused', () => {
  for (const text of [
    '{{clicks}}',
    '{{}}',
    '{{at:90m}}',
    '{{at:+9w}}',
    '{{click',
    '{{cl{{ick}}}}',
    '{{ click }}',
    'x{{product_id}}',
  ]) {
    assert.throws(() => fillFixture(text, values), /placeholder/, text)
  }
  assert.throws(() => fillFixture('{{click}}', { ...values, click: '' }), /no usable value/)
  assert.throws(() => fillFixture('{{click}}', { ...values, click: '{{x}}' }), /no usable value/)
  assert.throws(() => fillFixture('"{{product_id}}"', { ...values, productId: '1,"x":2' }), /productId/)
})

test.run()
