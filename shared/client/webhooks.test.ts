import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { verifyWebhook, WebhookVerificationError } from './index.ts'

const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`
const OTHER = `whsec_${Buffer.alloc(32, 4).toString('base64')}`
const ID = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'
const EVENT = {
  type: 'webhook.test',
  timestamp: '2026-11-01T07:00:00.000Z',
  data: { endpoint_id: 'نیا – 1' },
}
const BODY = JSON.stringify(EVENT)

function headersFor(secret = SECRET, at = new Date(), body = BODY): Record<string, string> {
  return {
    'webhook-id': ID,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(ID, at, body),
  }
}

const failure = (request: Parameters<typeof verifyWebhook>[0]) =>
  verifyWebhook(request).then(
    () => 'verified',
    (error: unknown) =>
      error instanceof WebhookVerificationError ? error.message : `${(error as Error).name} thrown`,
  )

test('returns the event of a request that the Standard Webhooks library signed', async () => {
  const expected = { id: ID, ...EVENT }
  const headers = headersFor()
  assert.equal(await verifyWebhook({ headers, body: BODY, secret: SECRET }), expected)
  assert.equal(await verifyWebhook({ headers, body: Buffer.from(BODY), secret: SECRET }), expected)
  assert.equal(
    await verifyWebhook({ headers: new Headers(headers), body: BODY, secret: [OTHER, SECRET] }),
    expected,
  )
})

test('accepts either signature during a rotation', async () => {
  const headers = headersFor()
  headers['webhook-signature'] += ` ${headersFor(OTHER)['webhook-signature']}`
  for (const secret of [SECRET, OTHER])
    assert.equal((await verifyWebhook({ headers, body: BODY, secret })).id, ID)
})

test('refuses a changed body, id or time, another secret, and another scheme', async () => {
  const headers = headersFor()
  const refused = 'no signature matches the secret'
  const at = Number(headers['webhook-timestamp'])
  assert.is(await failure({ headers, body: `${BODY} `, secret: SECRET }), refused)
  assert.is(await failure({ headers, body: BODY, secret: OTHER }), refused)
  assert.is(await failure({ headers, body: BODY, secret: [] }), refused)
  for (const change of [
    { 'webhook-id': 'another' },
    { 'webhook-timestamp': String(at + 1) },
    { 'webhook-signature': 'v1,' },
    { 'webhook-signature': 'v1,not base64!' },
    { 'webhook-signature': headers['webhook-signature']?.replace('v1,', 'v2,') },
    { 'webhook-signature': headers['webhook-signature']?.slice(3) },
  ])
    assert.is(await failure({ headers: { ...headers, ...change }, body: BODY, secret: SECRET }), refused)
})

test('refuses an old signature and one of the future', async () => {
  const refused = 'webhook-timestamp is too far from now'
  for (const seconds of [-301, 302]) {
    const headers = headersFor(SECRET, new Date(Date.now() + seconds * 1000))
    assert.is(await failure({ headers, body: BODY, secret: SECRET }), refused)
    assert.is(await failure({ headers, body: BODY, secret: SECRET, tolerance: 600 }), 'verified')
  }
  for (const timestamp of ['', 'soon', 'NaN']) {
    const headers = { ...headersFor(), 'webhook-timestamp': timestamp }
    assert.is.not(await failure({ headers, body: BODY, secret: SECRET }), 'verified')
  }
})

test('reads header names in any case, and values as lists', async () => {
  const signed = headersFor()
  const headers = Object.fromEntries(
    Object.entries(signed).map(([name, value]) => [name.replace(/w|i|t|s/, (c) => c.toUpperCase()), [value]]),
  )
  assert.is((await verifyWebhook({ headers, body: BODY, secret: SECRET })).id, ID)
  const both = [headersFor(OTHER)['webhook-signature'] ?? '', signed['webhook-signature'] ?? '']
  const several = { ...signed, 'webhook-signature': both }
  assert.is((await verifyWebhook({ headers: several, body: BODY, secret: SECRET })).id, ID)
})

test('refuses missing and repeated headers', async () => {
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    const headers: Record<string, string | string[]> = { ...headersFor(), [name]: ['a', 'b'] }
    const message = `the header ${name} is missing`
    if (name !== 'webhook-signature')
      assert.is(await failure({ headers, body: BODY, secret: SECRET }), message)
    delete headers[name]
    assert.is(await failure({ headers, body: BODY, secret: SECRET }), message)
  }
})

test('throws for a secret that is none, even if a signature with an empty key matches', async () => {
  const at = Math.floor(Date.now() / 1000)
  const mac = createHmac('sha256', '').update(`${ID}.${at}.${BODY}`).digest('base64')
  const headers = { 'webhook-id': ID, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${mac}` }
  for (const secret of ['', 'whsec_', 'whsec_%%%'])
    assert.is(await failure({ headers, body: BODY, secret }), 'TypeError thrown')
})

test('says that it needs the raw body, the headers and a secret', async () => {
  const headers = {}
  const message = (request: object) =>
    verifyWebhook(request as never).then(String, (error: Error) => `${error.name}: ${error.message}`)
  for (const body of [JSON.parse(BODY), undefined, null, 5]) {
    assert.match(await message({ headers, body, secret: SECRET }), /^TypeError: body must be the raw body/)
  }
  assert.match(await message({ body: BODY, secret: SECRET }), /^TypeError: headers is missing/)
  for (const secret of [undefined, '']) {
    assert.match(await message({ headers, body: BODY, secret }), /^TypeError: secret is missing/)
  }
})

test.run()
