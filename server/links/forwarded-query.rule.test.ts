// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { readVisitQuery, withForwarded } from './forwarded-query.rule.ts'

const OWN = new Set(['variant', 'Café', 'aff_ref'])
const forwarded = (query: string) => readVisitQuery(query, OWN).forwarded
const subId = (query: string) => readVisitQuery(query, OWN).subId

test('parameters are forwarded byte for byte, repeated ones too', () => {
  const same = [
    'utm_source=instagram&fbclid=x',
    'a=1&a=2&b&c=&=d',
    'q=lawn+suit%20%D8%B3%DB%8C%D9%84&x=%zz',
    'a=b=c&d=e?f',
    'Variant=1&SUB=2',
  ]
  for (const query of same) assert.is(forwarded(query), query)
  assert.is(forwarded(''), '')
  assert.is(forwarded('&&a=1&&'), 'a=1')
})

test("names of the product page's own address stay its own, also encoded", () => {
  assert.is(forwarded('variant=8&a=1&aff_ref=forged&Caf%C3%A9=x&sub=y'), 'a=1')
  assert.is(forwarded('v%61riant=8&aff%5Fref=forged&s%75b=y&b=2'), 'b=2')
  assert.is(forwarded('variant=8&variant=9'), '')
})

test('at most 2,048 bytes are forwarded, and of more nothing; the sub id is kept', () => {
  const long = (bytes: number) => `a=${'x'.repeat(bytes - 2)}`
  assert.is(forwarded(long(2048)), long(2048))
  assert.is(forwarded(`sub=reel&${long(2048)}`), long(2048))
  assert.equal(readVisitQuery(`${long(2049)}&sub=reel`, OWN), { forwarded: '', subId: 'reel' })
})

test('a sub id is 1 to 64 printable characters', () => {
  const kept = [
    ['sub=reel-1', 'reel-1'],
    ['a=1&sub=two+words&sub=second', 'two words'],
    ['s%75b=%D8%B9%DB%8C%D8%AF', 'عید'],
    ['sub=%20x%20', 'x'],
    ['sub=a=b', 'a=b'],
    [`sub=${encodeURIComponent('👩‍🍳❤️')}`, '👩‍🍳❤️'],
    [`sub=${encodeURIComponent('نیم\u200cروز')}`, 'نیم\u200cروز'],
    [`sub=${'x'.repeat(64)}`, 'x'.repeat(64)],
    [`sub=${'%F0%9F%94%A5'.repeat(64)}`, '🔥'.repeat(64)],
  ] as const
  for (const [query, text] of kept) assert.is(subId(query), text, query)
  const none = ['', 'a=1', 'sub', 'sub=', 'sub=+', 'sub=%00', 'sub=a%0Ab', 'sub=%E2%80%8B', 'sub=a%E2%80%AEb']
  for (const query of [...none, `sub=${'x'.repeat(65)}`, 'SUB=x']) assert.is(subId(query), null, query)
})

test('the address keeps its query and fragment', () => {
  const joined = (url: string, query: string) =>
    withForwarded(url, url.includes('#') ? url.slice(url.indexOf('#')) : '', query)
  assert.is(joined('https://kurta.pk/p?b=%20x#top', 'a=1'), 'https://kurta.pk/p?b=%20x&a=1#top')
  assert.is(joined('https://kurta.pk/p#top', 'a=1'), 'https://kurta.pk/p?a=1#top')
  assert.is(joined('https://kurta.pk/p?', 'a=1'), 'https://kurta.pk/p?a=1')
  assert.is(joined('https://kurta.pk/p?b&', 'a=1'), 'https://kurta.pk/p?b&a=1')
  assert.is(joined('https://kurta.pk/p#top', ''), 'https://kurta.pk/p#top')
})

test('whatever is sent, nothing of our own is forwarded', () => {
  const byte = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code))
  const piece = fc.oneof(byte, fc.constantFrom('&', '=', '%', 'sub', 'aff_ref', 'variant', '%61', '+'))
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const { forwarded: text, subId: sub } = readVisitQuery(pieces.join(''), OWN)
      const names = [...new URLSearchParams(`&${text}`).keys()]
      assert.not.ok(names.some((name) => OWN.has(name) || name === 'sub'))
      assert.ok(sub === null || (sub.trim() === sub && sub.length > 0))
    }),
  )
})

test.run()
