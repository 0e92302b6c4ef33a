import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentMarkOf, clickKindOf } from './click-kind.ts'

const CHROME =
  'Mozilla/5.0 (Linux; Android 14; SM-A155F) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36'
const INSTAGRAM =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Instagram 334.0.4.32.98'
const GOOGLE = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'

test('people on browsers and in apps are visits', () => {
  for (const agent of [CHROME, INSTAGRAM, CHROME])
    assert.is(clickKindOf('GET', { 'user-agent': agent }), 'visit', agent)
})

test('crawlers, tools and clients that do not say what they are are bots', () => {
  for (const agent of [GOOGLE, 'curl/8.5.0', 'facebookexternalhit/1.1', 'WhatsApp/2.23', '', undefined]) {
    assert.is(clickKindOf('GET', { 'user-agent': agent }), 'bot', agent)
  }
})

test('a browser that fetches ahead says so, whatever it fetches for', () => {
  const prefetches: Record<string, string>[] = [
    { 'sec-purpose': 'prefetch' },
    { 'sec-purpose': 'prefetch;prerender' },
    { purpose: 'prefetch' },
    { 'x-moz': 'prefetch' },
    { 'x-purpose': 'preview' },
    ...['empty', 'document', 'image'].map((destination) => ({
      ...{ 'sec-fetch-dest': destination, 'sec-purpose': 'prefetch' },
    })),
  ]
  for (const headers of prefetches)
    assert.is(clickKindOf('GET', { 'user-agent': CHROME, ...headers }), 'prefetch', JSON.stringify(headers))
  assert.is(clickKindOf('GET', { 'user-agent': CHROME, purpose: 'navigate' }), 'visit')
})

test('a link that a page loads as an image, frame, script or by fetch is embedded', () => {
  for (const destination of 'image iframe frame script style video object embed empty '.split(' ')) {
    const headers = { 'user-agent': CHROME, 'sec-fetch-dest': destination }
    assert.is(clickKindOf('GET', headers), 'embedded', destination)
  }
  const fromPage = { 'user-agent': CHROME, 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
  assert.is(clickKindOf('GET', fromPage), 'visit')
})

test('HEAD is of its own kind for every client', () => {
  assert.is(clickKindOf('HEAD', { 'user-agent': CHROME, 'sec-purpose': 'prefetch' }), 'head')
})

test('user agents have marks that tell them apart and stay the same, also of one that was forgotten meanwhile', () => {
  const marks = [CHROME, INSTAGRAM, GOOGLE].map(agentMarkOf)
  assert.is(new Set(marks).size, 3)
  assert.ok(marks.every((mark) => mark.length === 8))
  for (let other = 0; other < 2100; other += 1) agentMarkOf(`${CHROME} ${other}`)
  assert.equal([CHROME, INSTAGRAM, GOOGLE].map(agentMarkOf), marks)
  assert.is(clickKindOf('GET', { 'user-agent': CHROME }), 'visit')
  assert.is(agentMarkOf(undefined), '')
  assert.is(agentMarkOf(''), '')
})

test.run()
