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

/** `verified`, or why not. */
const outcome = (request: Partial<Parameters<typeof verifyWebhook>[0]>) =>
  verifyWebhook({ headers: headersFor(), body: BODY, secret: SECRET, ...request }).then(
    () => 'verified',
    (error: Error) => (error instanceof WebhookVerificationError ? '' : `${error.name}: `) + error.message,
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
  for (const secret of [SECRET, OTHER]) assert.is(await outcome({ headers, secret }), 'verified')
})

test('refuses a changed body, id or time, another secret, and another scheme', async () => {
  const headers = headersFor()
  const at = Number(headers['webhook-timestamp'])
  const signature = headers['webhook-signature']
  for (const request of [
    { headers, body: `${BODY} ` },
    { headers, secret: OTHER },
    { headers, secret: [] },
    { headers: { ...headers, 'webhook-id': 'another' } },
    { headers: { ...headers, 'webhook-timestamp': String(at + 1) } },
    ...['v1,', 'v1,not base64!', signature?.replace('v1,', 'v2,'), signature?.slice(3)].map((changed) => ({
      headers: { ...headers, 'webhook-signature': changed },
    })),
  ])
    assert.is(await outcome(request), 'no signature matches the secret', JSON.stringify(request))
})

test('refuses an old signature and one of the future', async () => {
  for (const seconds of [-301, 302]) {
    const headers = headersFor(SECRET, new Date(Date.now() + seconds * 1000))
    assert.is(await outcome({ headers }), 'webhook-timestamp is too far from now')
    assert.is(await outcome({ headers, tolerance: 600 }), 'verified')
  }
  for (const timestamp of ['', 'soon', 'NaN'])
    assert.is.not(await outcome({ headers: { ...headersFor(), 'webhook-timestamp': timestamp } }), 'verified')
})

test('reads header names in any case, and values as lists', async () => {
  const signed = headersFor()
  const upper = (name: string) => name.replace(/w|i|t|s/, (letter) => letter.toUpperCase())
  const headers = Object.fromEntries(Object.entries(signed).map(([name, value]) => [upper(name), [value]]))
  assert.is(await outcome({ headers }), 'verified')
  const both = [headersFor(OTHER)['webhook-signature'] ?? '', signed['webhook-signature'] ?? '']
  assert.is(await outcome({ headers: { ...signed, 'webhook-signature': both } }), 'verified')
})

test('refuses missing and repeated headers', async () => {
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    const { [name]: _, ...rest } = headersFor()
    const message = `the header ${name} is missing`
    assert.is(await outcome({ headers: rest }), message)
    if (name !== 'webhook-signature')
      assert.is(await outcome({ headers: { ...rest, [name]: ['a', 'b'] } }), message)
  }
})

test('throws for a secret that is none, even if a signature with an empty key matches', async () => {
  const at = Math.floor(Date.now() / 1000)
  const mac = createHmac('sha256', '').update(`${ID}.${at}.${BODY}`).digest('base64')
  const headers = { 'webhook-id': ID, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${mac}` }
  for (const secret of ['', 'whsec_', 'whsec_%%%'])
    assert.match(await outcome({ headers, secret }), /^TypeError: /)
})

test('says that it needs the raw body, the headers and a secret', async () => {
  const wrong = (request: object) => outcome(request as never)
  for (const body of [JSON.parse(BODY), undefined, null, 5])
    assert.match(await wrong({ body }), /^TypeError: body must be the raw body/)
  assert.match(await wrong({ headers: undefined }), /^TypeError: headers is missing/)
  for (const secret of [undefined, '']) assert.match(await wrong({ secret }), /^TypeError: secret is missing/)
})

test.run()
