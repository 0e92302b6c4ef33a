import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../test/testkit/eventually.ts'
import {
  ask,
  invoiceBody,
  payoutBody,
  sandboxOptions,
  withSandbox,
} from '../../test/testkit/sandbox-receiver.ts'
import { startSandbox } from './start-sandbox.ts'

const contract = suite('the generic contract')
contract('an invoice is made, found, paid, and confirmed by a signed event', async () => {
  await withSandbox(async (sandbox, receiver) => {
    const made = await ask(sandbox.url, 'POST', '/invoices', { body: invoiceBody(), key: 'k1' })
    assert.is(made.status, 201)
    assert.match(made.body.id, /^inv_/)
    await sandbox.idle()
    assert.is(receiver.received.length, 1)
    const [event] = receiver.received
    assert.is(event?.type, 'billing.payment_confirmed')
    assert.match(event?.data.payment_reference ?? '', /^pay_/)
    assert.is(event?.data.invoice_id, made.body.id)
    assert.is(event?.data.amount, '1250.00')
    assert.is(event?.data.currency, 'PKR')
    const found = await ask(sandbox.url, 'GET', '/invoices?reference=cycle-1')
    const { id, hosted_url } = made.body
    const item = { id, reference: 'cycle-1', amount: '1250.00', currency: 'PKR', status: 'paid', hosted_url }
    assert.equal(found.body, { items: [item] })
    assert.match((await ask(hosted_url, 'GET', '')).body, /1250\.00 PKR, paid/)
    assert.equal((await ask(sandbox.url, 'GET', '/invoices?reference=other')).body, { items: [] })
    assert.equal((await ask(sandbox.url, 'GET', '/payouts?reference=cycle-1')).body, { items: [] })
  })
})

contract('a payout is made and confirmed', async () => {
  await withSandbox(async (sandbox, receiver) => {
    const made = await ask(sandbox.url, 'POST', '/payouts', { body: payoutBody(), key: 'k1' })
    assert.equal(Object.keys(made.body), ['id'])
    await sandbox.idle()
    assert.is(receiver.received[0]?.type, 'payout.confirmed')
    const data = { payout_id: made.body.id, reference: 'payout-1', amount: '1000.00', currency: 'PKR' }
    assert.equal(receiver.received[0]?.data, data)
    assert.is(sandbox.state().payouts[0]?.status, 'paid')
  })
})

contract('one key makes one object: the same body again, another body, another path', async () => {
  await withSandbox(async (sandbox) => {
    const post = (path: string, body: unknown) => ask(sandbox.url, 'POST', path, { body, key: 'k1' })
    const [first, ...others] = await Promise.all([1, 2, 3, 4].map(() => post('/invoices', invoiceBody())))
    for (const other of others) assert.equal([other.status, other.body], [201, first?.body])
    const { customer, ...rest } = invoiceBody()
    assert.equal(
      (await post('/invoices', { customer, ...rest })).body,
      first?.body,
      'order of fields is no matter',
    )
    assert.is((await post('/invoices', invoiceBody('cycle-1', '1.00'))).status, 409)
    assert.is((await post('/invoices', { nonsense: true })).status, 409)
    assert.is((await post('/payouts', payoutBody())).status, 409)
    assert.is(sandbox.state().invoices.length, 1)
    assert.is(sandbox.state().events.length, 1)
  })
})

contract('bad calls are refused without effect', async () => {
  await withSandbox(async (sandbox) => {
    const post = async (options: Parameters<typeof ask>[3], path = '/invoices') =>
      (await ask(sandbox.url, 'POST', path, options)).status
    assert.is(await post({ body: invoiceBody(), key: 'k', headers: { authorization: 'Bearer other' } }), 401)
    assert.is(await post({ body: invoiceBody() }), 400, 'no key')
    assert.is(await post({ body: '{"reference":', key: 'k' }), 400)
    assert.is(await post({ body: 'x'.repeat(70_000), key: 'k' }), 413)
    const wrong = [
      { ...invoiceBody(), currency: 'USD' },
      { ...invoiceBody(), amount: '0.00' },
      { ...invoiceBody(), amount: 1250 },
      { ...invoiceBody(), surprise: 1 },
      payoutBody(),
    ]
    for (const body of wrong) assert.is(await post({ body, key: 'k' }), 422, JSON.stringify(body))
    assert.is(await post({ body: invoiceBody(), key: 'k' }, '/refunds'), 404)
    assert.is((await ask(sandbox.url, 'DELETE', '/invoices')).status, 405)
    assert.is((await ask(sandbox.url, 'GET', '/invoices')).status, 400)
    assert.is((await ask(sandbox.url, 'GET', '/pay/inv_none')).status, 404)
    const unauthorized = { headers: { authorization: '' } }
    assert.is((await ask(sandbox.url, 'GET', '/_sandbox/state', unauthorized)).status, 401)
    assert.is((await ask(sandbox.url, 'PUT', '/_sandbox/switches', unauthorized)).status, 401)
    assert.equal(sandbox.state().invoices, [])
  })
})
contract.run()

const delivery = suite('delivery')
delivery('is tried again with the same webhook-id until 2xx', async () => {
  await withSandbox(
    async (sandbox, receiver) => {
      await ask(sandbox.url, 'POST', '/invoices', { body: invoiceBody(), key: 'k1' })
      await sandbox.idle()
      assert.is(receiver.received.length, 4)
      assert.is(new Set(receiver.received.map((event) => event.id)).size, 1)
      assert.is(sandbox.state().events[0]?.attempts, 4)
      assert.type(sandbox.state().events[0]?.delivered_at, 'string')
    },
    [500, 302, 404],
  )
})

delivery('one event that is not taken does not hold up the next', async () => {
  await withSandbox(
    async (sandbox, receiver) => {
      sandbox.switches({ hold_events: true })
      for (const n of [1, 2]) {
        await ask(sandbox.url, 'POST', '/payouts', { body: payoutBody(`p${n}`), key: `k${n}` })
      }
      sandbox.switches({ hold_events: false })
      await sandbox.idle()
      const references = receiver.received.map((event) => event.data.reference)
      assert.equal(references, ['p1', 'p2', 'p1'])
    },
    [503],
  )
})

delivery('waits for a receiver whose address is not known yet', async () => {
  await withSandbox(async (_, receiver) => {
    let url: string | null = null
    const early = await startSandbox(sandboxOptions({ webhookUrl: () => url }))
    await ask(early.url, 'POST', '/invoices', { body: invoiceBody(), key: 'k1' })
    url = receiver.url
    await early.idle()
    assert.is(receiver.received.length, 1)
    await early.close()
  })
})

delivery('closing ends stalled calls, waiting events and waiters, at once and twice', async () => {
  const sandbox = await startSandbox(sandboxOptions({ webhookUrl: () => null }))
  sandbox.switches({ stall_next: 1, stall_ms: 600_000 })
  const stalled = ask(sandbox.url, 'POST', '/payouts', { body: payoutBody(), key: 'k1' }).then(
    () => 'answered',
    () => 'broken',
  )
  await eventually(() => sandbox.switches().stall_next === 0)
  await ask(sandbox.url, 'POST', '/invoices', { body: invoiceBody(), key: 'k2' })
  const idle = sandbox.idle().then(
    () => 'idle',
    (error: Error) => error.message,
  )
  await Promise.all([sandbox.close(), sandbox.close()])
  assert.is(await stalled, 'broken')
  assert.match(await idle, /closed/)
})

delivery('a wrong secret, an empty key or a taken port stops the start', async () => {
  const starts = async (over: object) => {
    try {
      await (await startSandbox(sandboxOptions({ webhookUrl: () => null, ...over }))).close()
      return 'started'
    } catch (error) {
      return error instanceof Error ? error.message : 'no error'
    }
  }
  assert.match(await starts({ webhookSecret: 'not base64!' }), /webhook secret must be base64/)
  assert.match(await starts({ apiKey: '' }), /API key is empty/)
  await withSandbox(async (sandbox) => {
    assert.match(await starts({ port: sandbox.port }), /EADDRINUSE/)
  })
})
delivery.run()
