// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { anyCharacter, fc } from '../test/testkit/property.ts'
import { canBeSlug, queryOf, readTypedLink, slugIn } from './slug.rule.ts'

const SLUG = 'k7m2xq9wpd'

test('a text with a slug in it: what people type, paste and send', () => {
  const typed = [
    'K7M2XQ9WPD',
    ' k7m2xq9wpd ',
    ...['/', '//', '.', ',', ';', ':', '!', '?', "'", '"', ')', ']', '}'],
    ...['...', ').', '>', '*', '_', '~', '=', '|'],
    ...['۔', '،', '؛', '؟', '»', '”', '…', '۔۔', '🔥', '👍🏽', '❤️', '\n', '\r\n', '\u00a0', '\ufffd'],
  ].map((text) => (text.length > 5 ? text : SLUG + text))
  const wrapped = ['\u200e', '\u200f', '\u202a', '\u202c', '\u2066', '\u2069', '\u200b', '\u00ad', '\ufeff']
  for (const mark of wrapped) typed.push(mark + SLUG + mark, SLUG.replace('x', `${mark}x`))
  for (const text of typed) assert.is(slugIn(text), SLUG, JSON.stringify(text))
})

test('what remains must be exactly a slug', () => {
  const strangers = [
    ...['', '.', '۔', '\u200b', 'abc', '../k7m2xq9wpd', 'k7m2xq9wpd/more', 'k7m2 xq9wpd', 'k7m2\nxq9wpd'],
    ...['k7m2-xq9wpd', '(k7m2xq9wpd)', `${SLUG}پر`, 'ü2345', 'k7m2\0xq9', 'x'.repeat(33), '\u212a7m2xq9wpd'],
    ...['.'.repeat(513), `${SLUG}${'.'.repeat(600)}`, '\u200b'.repeat(600)],
  ]
  for (const text of strangers) assert.is(slugIn(text), null, JSON.stringify(text.slice(0, 30)))
})

test('a request target, with its query', () => {
  const cases: [target: string, query?: string][] = [
    ['/go/k7m2xq9wpd'],
    ['/go/k7m2xq9wpd/'],
    ['//go/k7m2xq9wpd'],
    ['/Go//K7M2XQ9WPD'],
    ['/go/k7m2xq9wpd%E2%80%8E'],
    ['/go/%E2%81%A6k7m2xq9wpd%E2%81%A9'],
    ['/go/k7m2xq9wpd%DB%94'],
    ['/go/k7m2xq9wpd%29.'],
    ['/go/k7m2xq9wpd%E2%80'],
    ['/go/k7m2xq9wpd%E'],
    ['/go/k7m2xq9wpd%'],
    ['/go/k7m2xq9wpd%20'],
    ['/go/k7m2xq9wpd+'],
    ['/go/k7m2xq9wpd#reviews?a=1'],
    ['/go/k7m2xq9wpd%23reviews'],
    ['/go/k7m2xq9wpd&brid=abc', 'brid=abc'],
    ['/go/k7m2xq9wpd&brid=abc&sub=reel?x=1', 'brid=abc&sub=reel?x=1'],
    ['/go/k7m2xq9wpd%26fbclid=x', 'fbclid=x'],
    ['/go/k7m2xq9wpd%3Ffbclid=x', 'fbclid=x'],
    ['/go/k7m2xq9wpd%3fa%3D1%26b%3d%2525', 'a=1&b=%2525'],
    ['/go/k7m2xq9wpd?a%3D1%26b', 'a%3D1%26b'],
    ['/go/k7m2xq9wpd/?fbclid=x#top', 'fbclid=x'],
  ]
  for (const [target, query = ''] of cases) {
    assert.equal(readTypedLink(target), { slug: SLUG, query }, target)
  }
  assert.equal(readTypedLink(`/go/${'.'.repeat(600)}?a=1`), { slug: null, query: '' })
  assert.equal(readTypedLink('/go/?a=1'), { slug: null, query: 'a=1' })
  for (const other of ['/', '/go', '/gone/x', '/offers/k7m2xq9wpd', '/x/go/k7m2xq9wpd']) {
    assert.is(readTypedLink(other), null, other)
  }
})

test('the query of a target', () => {
  const cases = [
    ['/go/x', ''],
    ['/go/x?', ''],
    ['/go/x?a=1&b', 'a=1&b'],
    ['/go/x?a=1?b', 'a=1?b'],
    ['/go/x?a=1#b?c', 'a=1'],
  ] as const
  for (const [target, query] of cases) assert.is(queryOf(target), query, target)
})

test('whatever is typed, the result is a slug or none, and a slug stays itself', () => {
  const texts = fc.string({ unit: anyCharacter, maxLength: 40 })
  fc.assert(
    fc.property(texts, (text) => {
      for (const found of [
        slugIn(text),
        readTypedLink(`/go/${encodeURIComponent(text.toWellFormed())}`)?.slug,
      ]) {
        if (found !== null) assert.ok(canBeSlug(found ?? ''))
      }
    }),
  )
  const slugs = fc.stringMatching(/^[0-9a-z]{4,32}$/)
  fc.assert(fc.property(slugs, (slug) => slugIn(slug) === slug && slugIn(slug.toUpperCase()) === slug))
})

test.run()
