import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pluck } from '../test/testkit/pluck.ts'
import type { Fields } from './fields.ts'
import { readReferences } from './tracking.ts'

/** The first reference and its place. */
const first = (order: Fields, parameter = 'aff_ref') => {
  const [found] = readReferences(order, parameter)
  return [found?.reference ?? null, found?.source ?? null]
}

test('note_attributes come before landing_site, and an empty or odd place is passed over', () => {
  const landing_site = '/products/x?aff_ref=landed'
  const noted = (value: unknown, name = 'aff_ref') => [
    { name: 'gift_wrap', value: 'yes' },
    { name, value },
  ]
  assert.equal(first({ note_attributes: noted(' noted '), landing_site }), ['noted', 'note_attributes'])
  const unnamed = [[null, 'x', 7], {}, null, 'aff_ref']
  const odd = [noted(''), noted(null), noted({}), noted('n', 'my_aff_ref'), ...unnamed]
  for (const note_attributes of odd)
    assert.equal(first({ note_attributes, landing_site }), ['landed', 'landing_site'])
  assert.equal(first({ note_attributes: [...noted(''), ...noted('second')] }), ['second', 'note_attributes'])
  assert.equal(first({}), [null, null])
})

test("a line's property comes after note_attributes and before landing_site", () => {
  const landing_site = '/products/x?aff_ref=landed'
  const bought = (value: unknown, name = '_aff_ref') => [
    { properties: [{ name: '_bundle', value: 'a' }] },
    {
      properties: [
        { name: 'Engraving', value: 'To Sana' },
        { name, value },
      ],
    },
    { properties: [{ name: '_aff_ref', value: 'third' }] },
  ]
  const found = (changes: Fields) => first({ landing_site, ...changes })
  const note_attributes = [{ name: 'aff_ref', value: 'noted' }]
  assert.equal(found({ note_attributes, line_items: bought('b') }), ['noted', 'note_attributes'])
  assert.equal(found({ note_attributes: [], line_items: bought(' b ') }), ['b', 'line_item'])
  for (const value of ['', null, {}, 7])
    assert.equal(found({ line_items: bought(value) }), ['third', 'line_item'])
  assert.equal(found({ line_items: bought('b', 'aff_ref') }), ['third', 'line_item'], 'another name')
  for (const line_items of [
    [null, 7, 'x', {}, { properties: {} }, { properties: [null, 3] }],
    [{ properties: [{ name: 'aff_ref', value: 'without the underscore' }] }],
    {},
    null,
  ]) {
    assert.equal(found({ line_items }), ['landed', 'landing_site'])
  }
})

test('landing_site may be a path or an address, with broken escapes, fragments and repeats', () => {
  const from = (landing_site: unknown) => first({ landing_site })[0]
  const broken = '/x?bad=%E0%A4%A&aff_ref=a-1&% /x?aff_ref=&aff_ref=a-1 /x?aff_ref=a%2D1 /x&aff_ref=a-1'
  const whole = '/products/x?utm=1&aff_ref=a-1 https://shop.example/products/x?aff_ref=a-1&v=2#reviews'
  for (const address of `${whole} ${broken}`.split(' ')) assert.is(from(address), 'a-1', address)
  for (const other of [...'/x#?aff_ref=a-1 /x?my_aff_ref=a-1 /x?aff_ref /aff_ref=a-1'.split(' '), '', 42])
    assert.is(from(other), null, String(other))
  assert.is(from(`/x?aff_ref=${'y'.repeat(5000)}`)?.length, 200)
  assert.is(first({ landing_site: '/x?via=b' }, 'via')[0], 'b')
})

test('all references are read in the sequence of their places, each once, 25 at most', () => {
  const order = {
    note_attributes: ['null', 'a', 'a'].map((value) => ({ name: 'aff_ref', value })),
    line_items: [{ properties: [{ name: '_aff_ref', value: 'b' }] }, null],
    landing_site: '/x?aff_ref=a&aff_ref=c',
  }
  assert.equal(
    readReferences(order, 'aff_ref').map(({ reference, source }) => `${source} ${reference}`),
    ['note_attributes null', 'note_attributes a', 'line_item b', 'landing_site c'],
  )
  const many = Array.from({ length: 99 }, (_, value) => ({ name: 'aff_ref', value: `r${value}` }))
  const read = readReferences({ note_attributes: many }, 'aff_ref')
  assert.equal([read.length, read[0]?.reference, read.at(-1)?.reference], [25, 'r0', 'r24'])
})

const CLICK = '0197a3c0-5b1e-7d42-9c3f-2a64d1f0b8e7'

test('a landing site that apps have changed still leads to the click', () => {
  for (const landing_site of [
    `/x?utm=1&amp;aff_ref=${CLICK}`,
    `/x?AFF_REF=${CLICK}`,
    `/x?aff-ref=${CLICK}`,
    `/x?aff_ref=${CLICK}/`,
    `/x?aff_ref=${CLICK}?fbclid=IwAR0`,
    `/x?igsh=1?aff_ref=${CLICK}`,
    `/x?aff_ref%3D${CLICK}%26utm%3D1`,
    `/x%3Faff_ref%3D${CLICK}`,
    `/x%253Faff_ref%253D${CLICK}`,
    `/x&aff_ref=${CLICK}&brid=2`,
    `/x?aff_ref=%22${CLICK}%22`,
    `/x?aff_ref=\u200e${CLICK}`,
  ]) {
    assert.equal(first({ landing_site }), [CLICK, 'landing_site'], landing_site)
  }
  const twice = readReferences({ landing_site: `/x?aff_ref=null&aff_ref=${CLICK}` }, 'aff_ref')
  assert.equal(pluck(twice, 'reference'), ['null', CLICK])
})

test('attributes as an object, as keys, with odd names and quoted values', () => {
  for (const note_attributes of [
    { gift: 'yes', aff_ref: CLICK },
    [{ key: 'aff_ref', value: CLICK }],
    [{ name: ' Aff Ref ', value: ` ${CLICK} ` }],
    [{ name: 'AFF_REF', value: `"${CLICK}"` }],
    [{ name: 'aff-ref', value: `“${CLICK}”` }],
    [{ name: 'aff_ref', value: `\u2066${CLICK}\u2069` }],
  ])
    assert.equal(first({ note_attributes }), [CLICK, 'note_attributes'], JSON.stringify(note_attributes))
  assert.is(first({ line_items: [{ properties: { _aff_ref: CLICK } }] })[1], 'line_item')
  assert.is(first({ line_items: [{ properties: [{ name: '_Aff_Ref', value: CLICK }] }] })[1], 'line_item')
})

test('the address that a form for cash on delivery writes into an attribute or the note is read', () => {
  const address = `https://chenab.pk/products/suit?utm_source=ig&aff_ref=${CLICK}#form`
  for (const order of [
    { note_attributes: [{ name: 'Full URL', value: address }] },
    { note_attributes: { landing_page: address } },
    { note: `Landing page: ${address}\nIP: 203.0.113.9` },
    { note: `utm_source=ig aff_ref=${CLICK}` },
    { note: `utm_source=ig&aff_ref%3D${CLICK}` },
  ])
    assert.equal(first(order), [CLICK, 'note_attributes'], JSON.stringify(order))
  for (const note of [`ring before ${CLICK}`, 'aff_ref', null, 7]) assert.equal(first({ note }), [null, null])
  const own = [
    { name: 'URL', value: address },
    { name: 'aff_ref', value: 'own' },
  ]
  assert.is(first({ note_attributes: own })[0], 'own', 'the attribute itself comes first')
})

test.run()
