import { createHmac } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { anyCharacter, fc } from '../../test/testkit/property.ts'
import { createSignatureScheme } from './choose-scheme.ts'
import { hmacSettingsSchema, type SignatureScheme } from './hmac.ts'

const hmacForm = (settings: object) =>
  createSignatureScheme({ scheme: 'hmac', hmac: hmacSettingsSchema.parse(settings) })
const stripeForm = hmacForm({
  ...{ template: '{timestamp}.{body}', id_field: 'id' },
  ...{ signature_header: 'Stripe-Signature', header_form: 'pairs' },
})
const headerForm = hmacForm({
  ...{ template: '{id}|{timestamp}|{body}', algorithm: 'sha512', encoding: 'base64', secret_encoding: 'hex' },
  ...{ signature_header: 'X-Signature', prefix: 'sig=', separator: ' ', id_header: 'X-Event' },
  ...{ timestamp_header: 'X-Time', timestamp_format: 'unix_milliseconds', tolerance_seconds: 60 },
})
const standard = createSignatureScheme({ scheme: 'standard-webhooks' })
const raast = createSignatureScheme({ scheme: 'safepay-raast' })
const v2 = createSignatureScheme({ scheme: 'safepay-v2' })

interface Sample {
  name: string
  scheme: SignatureScheme
  secret: string
  otherSecret: string
  toleranceMs: number | null
}

const base64Secret = (fill: number) => Buffer.alloc(32, fill).toString('base64')
const [ONE, TWO] = [base64Secret(1), base64Secret(2)]
const [FIVE_MINUTES, MINUTE] = [300_000, 60_000]
const sample = (
  name: string,
  scheme: SignatureScheme,
  toleranceMs: number | null,
  secret: string,
  otherSecret: string,
): Sample => ({ name, scheme, toleranceMs, secret, otherSecret })
const SAMPLES: Sample[] = [
  sample('standard-webhooks', standard, FIVE_MINUTES, `whsec_${ONE}`, `whsec_${TWO}`),
  sample('safepay-raast', raast, FIVE_MINUTES, ONE, TWO),
  sample('safepay-v2', v2, null, 'one', 'two'),
  sample('hmac pairs', stripeForm, FIVE_MINUTES, 'one', 'two'),
  sample('hmac header', headerForm, MINUTE, 'ab01', 'ab02'),
]
const NOW = 1_700_000_000_000
const BODY = Buffer.from('{"identifier":"evt_1","token":"evt_1","id":"evt_1","name":"\\u0627 \u0627\u0631"}')

function signed(sample: Sample, now = NOW) {
  return sample.scheme.sign({ deliveryId: 'evt_1', rawBody: BODY, secret: sample.secret, now })
}

const everyScheme = suite('every scheme')
for (const sample of SAMPLES) {
  const whole = { headers: signed(sample), rawBody: BODY, secrets: [sample.secret], now: NOW }
  const verify = (over: Partial<Parameters<SignatureScheme['verify']>[0]> = {}) =>
    sample.scheme.verify({ ...whole, ...over })

  everyScheme(`${sample.name}: accepts what it signed and reads the event id`, () => {
    const signedAt = sample.toleranceMs === null ? null : NOW
    assert.equal(verify(), { ok: true, deliveryId: 'evt_1', signedAt })
  })

  everyScheme(`${sample.name}: any of several secrets may match`, () => {
    assert.ok(verify({ secrets: [sample.otherSecret, sample.secret] }).ok)
    assert.not(verify({ secrets: [sample.otherSecret] }).ok)
    assert.not(verify({ secrets: [] }).ok)
  })

  everyScheme(`${sample.name}: an empty or unreadable secret opens nothing`, () => {
    for (const secret of ['', 'whsec_']) assert.not(verify({ secrets: [secret] }).ok)
    assert.type(sample.scheme.secretProblem(''), 'string')
    assert.is(sample.scheme.secretProblem(sample.secret), null)
    assert.throws(() => sample.scheme.sign({ deliveryId: 'x', rawBody: BODY, secret: '', now: NOW }))
  })

  everyScheme(`${sample.name}: one changed byte of body or signature is refused`, () => {
    const changed = Buffer.from(BODY)
    changed[changed.length - 3] = 0x2e
    assert.not(verify({ rawBody: changed }).ok)
    for (const [name, value] of Object.entries(signed(sample))) {
      const last = value.at(-3) === '1' ? '2' : '1'
      const headers = { ...signed(sample), [name]: `${value.slice(0, -3)}${last}${value.slice(-2)}` }
      assert.not(verify({ headers }).ok, name)
    }
  })

  everyScheme(`${sample.name}: refuses a missing header, and one that came twice`, () => {
    for (const [name, value] of Object.entries(signed(sample))) {
      assert.not(verify({ headers: { ...signed(sample), [name]: undefined } }).ok, `${name} missing`)
      assert.not(verify({ headers: { ...signed(sample), [name]: '' } }).ok, `${name} empty`)
      assert.not(verify({ headers: { ...signed(sample), [name]: `${value}, ${value}` } }).ok, `${name} twice`)
    }
  })

  if (sample.toleranceMs !== null) {
    const tolerance = sample.toleranceMs
    everyScheme(`${sample.name}: holds to the allowed clock difference, either way`, () => {
      for (const way of [-1, 1]) {
        assert.ok(verify({ now: NOW + way * tolerance }).ok)
        assert.not(verify({ now: NOW + way * (tolerance + 1) }).ok)
      }
    })
  }

  everyScheme(`${sample.name}: never throws, and accepts nothing arbitrary`, () => {
    const names = [...Object.keys(signed(sample)), 'x-sfpy-event-id', '__proto__', 'constructor']
    const known = [...Object.values(signed(sample)), 'v1,', 'v1,AAAA', 't=,v1=', 'sha256=', 'a'.repeat(5000)]
    const value = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom(...known),
      fc.constantFrom(undefined, 5, null, ['a']).map((odd) => odd as string | undefined),
    )
    const input = fc.record({
      headers: fc.array(fc.tuple(fc.constantFrom(...names), value)).map((all) => Object.fromEntries(all)),
      rawBody: fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      secrets: fc.array(fc.string()).map((secrets) => [...secrets, sample.secret]),
      now: fc.oneof(fc.constant(NOW), fc.integer()),
    })
    const isRefused = fc.property(input, (some) => assert.is(sample.scheme.verify(some).ok, false))
    fc.assert(isRefused, { numRuns: 500 })
  })

  everyScheme(`${sample.name}: signing and verifying agree on any body and id`, () => {
    const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,40}$/)
    fc.assert(
      fc.property(id, fc.json(), (deliveryId, text) => {
        const ids = { identifier: deliveryId, token: deliveryId, id: deliveryId }
        const rawBody = Buffer.from(JSON.stringify({ ...ids, text }))
        const headers = sample.scheme.sign({ deliveryId, rawBody, secret: sample.secret, now: NOW })
        const verdict = sample.scheme.verify({ headers, rawBody, secrets: [sample.secret], now: NOW })
        assert.is(verdict.ok && verdict.deliveryId, deliveryId)
      }),
      { numRuns: 100 },
    )
  })
}
everyScheme.run()

const vectors = suite('check vectors')
vectors('standard-webhooks', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const rawBody = Buffer.from('{"test": 2432232314}')
  const now = 1_614_265_330_000
  const headers = standard.sign({ deliveryId: 'msg_p5jXN8AQM9LWM0D4loKWxJek', rawBody, secret, now })
  assert.equal(headers, {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
  assert.ok(standard.verify({ headers, rawBody, secrets: [secret], now }).ok)
})

vectors('safepay-raast', () => {
  const headers = {
    'x-sfpy-timestamp': '2026-09-14T12:25:40.123456789Z',
    'x-sfpy-signature': 'sha256=02411bbed338389702db6bf1c63f258207ea0d2e2bf378397c99fcb1cb21f00b',
  }
  const verdict = raast.verify({
    headers,
    rawBody: Buffer.from('{"webhook_event_type":"payment.settled"}'),
    secrets: ['MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='],
    now: Date.parse('2026-09-14T12:25:40.123Z'),
  })
  assert.equal(verdict, { ok: true, deliveryId: null, signedAt: Date.parse('2026-09-14T12:25:40.123Z') })
})

vectors('the Stripe form', () => {
  const input = {
    headers: {
      'stripe-signature':
        't=1614265330,v1=347e9afe3d74ec4c5cbefd270edc9246513ae3da7b375223e302560fbd4146eb,v0=other',
    },
    rawBody: Buffer.from('{"id":"evt_1"}'),
    secrets: ['whsec_test'],
    now: 1_614_265_330_000,
  }
  assert.equal(stripeForm.verify(input), { ok: true, deliveryId: 'evt_1', signedAt: input.now })
})
vectors.run()

const corners = suite('corners')
corners('any of several signatures in one header may match', () => {
  for (const sample of SAMPLES.filter(({ name }) => ['standard-webhooks', 'hmac header'].includes(name))) {
    const name = sample.name === 'hmac header' ? 'x-signature' : 'webhook-signature'
    const good = signed(sample)[name]
    const wrong = `${name === 'x-signature' ? 'sig=' : 'v1,'}${Buffer.alloc(32).toString('base64')}`
    for (const list of [`${wrong} ${good}`, `${good} ${wrong}`, `v1a,zzz ${good}`]) {
      const headers = { ...signed(sample), [name]: list }
      const input = { headers, rawBody: BODY, secrets: [sample.secret], now: NOW }
      assert.ok(sample.scheme.verify(input).ok, list)
    }
  }
  const time = NOW / 1000
  const good = createHmac('sha256', 'one').update(`${time}.`).update(BODY).digest('hex')
  const headers = { 'stripe-signature': `t=${time},v1=${'0'.repeat(64)},v1=${good}` }
  assert.ok(stripeForm.verify({ headers, rawBody: BODY, secrets: ['one'], now: NOW }).ok)
})

corners('several times in a Stripe header are refused, wherever the second stands', () => {
  const good = stripeForm.sign({ deliveryId: '', rawBody: BODY, secret: 'one', now: NOW })['stripe-signature']
  for (const header of [`${good},t=${NOW / 1000}`, `t=1,${good}`, `${good},nonsense`]) {
    const headers = { 'stripe-signature': header }
    assert.not(stripeForm.verify({ headers, rawBody: BODY, secrets: ['one'], now: NOW }).ok, header)
  }
})

corners('the border between id and timestamp cannot be moved', () => {
  const secret = `whsec_${ONE}`
  const rawBody = Buffer.from(`${NOW / 1000}.5`)
  const headers = standard.sign({ deliveryId: 'm', rawBody, secret, now: NOW })
  const moved = { ...headers, 'webhook-id': `m.${NOW / 1000}` }
  const input = { headers: moved, rawBody: Buffer.from('5'), secrets: [secret], now: NOW }
  assert.not(standard.verify(input).ok)
})

corners('safepay-raast: the unsigned event id must be the one that the body names', () => {
  const secret = ONE
  const verdictOn = (body: string, eventId: string | undefined) => {
    const rawBody = Buffer.from(body)
    const headers = raast.sign({ deliveryId: 'evt_1', rawBody, secret, now: NOW })
    const named = { ...headers, 'x-sfpy-event-id': eventId }
    return raast.verify({ headers: named, rawBody, secrets: [secret], now: NOW })
  }
  assert.not(verdictOn('{"identifier":"evt_1"}', 'evt_2').ok)
  assert.not(verdictOn('{"identifier":"evt_1"}', undefined).ok)
  assert.not(verdictOn('{}', 'evt_1').ok)
  assert.not(verdictOn('{"identifier":7}', undefined).ok)
  assert.equal(verdictOn('not json', 'evt_1'), { ok: true, deliveryId: null, signedAt: NOW })
})

corners('a malformed body is still let in when its signature holds', () => {
  const rawBody = Buffer.from('{"token":')
  const headers = v2.sign({ deliveryId: '', rawBody, secret: 'one', now: NOW })
  const verdict = v2.verify({ headers, rawBody, secrets: ['one'], now: NOW })
  assert.equal(verdict, { ok: true, deliveryId: null, signedAt: null })
})

corners('hmac settings that leave a time or an id unsigned are refused', () => {
  const wrong = [
    { template: '{timestamp}' },
    { template: '{body}{body}' },
    { template: '{body}{nonce}' },
    { template: '{timestamp}.{body}' },
    { template: '{body}', timestamp_header: 'x-time' },
    { template: '{body}', id_header: 'x-id' },
    { template: '{id}.{body}' },
    { signature_header: 'not a header' },
    { surprise: true },
  ]
  for (const settings of wrong) {
    const parsed = hmacSettingsSchema.safeParse({ signature_header: 'x-signature', ...settings })
    assert.not(parsed.success, JSON.stringify(settings))
  }
  assert.ok(hmacSettingsSchema.safeParse({ signature_header: 'X-Signature' }).success)
})

corners.run()
