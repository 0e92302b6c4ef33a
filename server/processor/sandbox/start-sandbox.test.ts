import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, type Test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../test/testkit/eventually.ts'
import { pluck, pluckAll } from '../../test/testkit/pluck.ts'
import { messageOf } from '../../test/testkit/rejection.ts'
import {
  API_KEY,
  ask,
  invoiceBody,
  payoutBody,
  SECRET,
  sandboxOptions,
  startReceiver,
} from '../../test/testkit/sandbox-receiver.ts'
import { type Sandbox, startSandbox } from './start-sandbox.ts'

interface Context {
  sandbox: Sandbox
  /** Where the file of a sandbox may be; the suite's own has none. */
  databasePath: string
  receiver: Awaited<ReturnType<typeof startReceiver>>
  /** What the receiver answers first, by the reference of an event. */
  statuses: Record<string, number[]>
}

function withSandbox(it: Test<Context>): Test<Context> {
  it.before.each(async (context) => {
    context.databasePath = join(await mkdtemp(join(tmpdir(), 'sandbox-')), 'sandbox.db')
    context.statuses = {}
    context.receiver = await startReceiver(context.statuses)
    context.sandbox = await startSandbox(sandboxOptions({ webhookUrl: context.receiver.webhookUrl }))
  })
  it.after.each(async ({ sandbox, receiver, databasePath }) => {
    await sandbox.close()
    await receiver.close()
    await rm(join(databasePath, '..'), { recursive: true, force: true })
  })
  return it
}

const contract = withSandbox(suite('the generic contract'))
const allDelivered = (sandbox: Sandbox) =>
  eventually(() => sandbox.state().events.every(({ delivered_at }) => delivered_at !== null))
const requestInvoice = (url: string) => ask(url, 'POST', '/invoices', { body: invoiceBody(), key: 'i' })
const requestPayout = (url: string, n = 1) =>
  ask(url, 'POST', '/payouts', { body: payoutBody(`p${n}`), key: `k${n}` })

contract('an invoice is made, found, paid, confirmed by a signed event', async ({ sandbox, receiver }) => {
  const made = await requestInvoice(sandbox.url)
  assert.is(made.status, 201)
  assert.match(made.body.id, /^inv_/)
  await allDelivered(sandbox)
  const [event] = receiver.received
  const { payment_reference, ...about } = event?.data ?? {}
  assert.is(event?.type, 'billing.payment_confirmed')
  assert.match(payment_reference ?? '', /^pay_/)
  assert.equal(about, { invoice_id: made.body.id, amount: '1250.00', currency: 'PKR' })
  const found = await ask(sandbox.url, 'GET', '/invoices?reference=cycle-1')
  const { id, hosted_url } = made.body
  const item = { id, reference: 'cycle-1', amount: '1250.00', currency: 'PKR', status: 'paid', hosted_url }
  assert.equal(found.body, { items: [item] })
  assert.match((await ask(hosted_url, 'GET', '')).body, /1250\.00 PKR, paid/)
  assert.equal((await ask(sandbox.url, 'GET', '/invoices?reference=other')).body, { items: [] })
  assert.equal((await ask(sandbox.url, 'GET', '/payouts?reference=cycle-1')).body, { items: [] })
})

contract('payouts are confirmed, or fail with a reason', async ({ sandbox, receiver }) => {
  sandbox.switches({ fail_next_payouts: 1, failure_reason: 'account closed' })
  await requestInvoice(sandbox.url)
  for (const n of [1, 2]) await requestPayout(sandbox.url, n)
  await allDelivered(sandbox)
  const { payouts } = sandbox.state()
  assert.equal(pluck(payouts, 'status'), ['failed', 'paid'])
  const about = { amount: '1000.00', currency: 'PKR' }
  assert.equal(pluckAll(receiver.received.slice(1), 'type', 'data'), [
    ['payout.failed', { payout_id: payouts[0]?.id, reference: 'p1', ...about, reason: 'account closed' }],
    ['payout.confirmed', { payout_id: payouts[1]?.id, reference: 'p2', ...about }],
  ])
})

contract('one key makes one object, also with another body or path', async ({ sandbox }) => {
  const post = (path: string, body: unknown) => ask(sandbox.url, 'POST', path, { body, key: 'k1' })
  const [first, ...others] = await Promise.all([1, 2, 3, 4].map(() => post('/invoices', invoiceBody())))
  for (const other of others) assert.equal([other.status, other.body], [201, first?.body])
  const { customer, ...rest } = invoiceBody()
  const reordered = await post('/invoices', { customer, ...rest })
  assert.equal(reordered.body, first?.body)
  assert.is((await post('/invoices', invoiceBody('cycle-1', '1.00'))).status, 409)
  assert.is((await post('/invoices', { nonsense: true })).status, 409)
  assert.is((await post('/payouts', payoutBody())).status, 409)
  assert.equal([sandbox.state().invoices.length, sandbox.state().events.length], [1, 1])
})

contract('bad calls are refused without effect', async ({ sandbox }) => {
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
  assert.is((await ask(sandbox.url, 'GET', '/invoices')).status, 400)
  assert.is((await ask(sandbox.url, 'GET', '/pay/inv_none')).status, 404)
  const unauthorized = { headers: { authorization: '' } }
  assert.is((await ask(sandbox.url, 'GET', '/_sandbox/state', unauthorized)).status, 401)
  assert.is((await ask(sandbox.url, 'PUT', '/_sandbox/switches', unauthorized)).status, 401)
  assert.equal(sandbox.state().invoices, [])
})

contract('switches are set over HTTP, in parts, and refused when invalid', async ({ sandbox }) => {
  const put = (body: unknown) => ask(sandbox.url, 'PUT', '/_sandbox/switches', { body })
  const normal = sandbox.switches()
  await put({ lose_next_answers: 2 })
  const both = { ...normal, lose_next_answers: 2, event_delay_ms: 7 }
  assert.equal((await put({ event_delay_ms: 7 })).body, both)
  for (const wrong of [{ lose_next_answers: -1 }, { typo: 1 }, { failure_reason: '' }]) {
    assert.is((await put(wrong)).status, 422, JSON.stringify(wrong))
  }
  const state = await ask(sandbox.url, 'GET', '/_sandbox/state')
  assert.equal(state.body, { invoices: [], payouts: [], events: [], switches: both })
})

contract('a call with a lost answer has taken effect, once', async ({ sandbox }) => {
  sandbox.switches({ lose_next_answers: 1 })
  assert.is(await requestPayout(sandbox.url).catch(() => null), null)
  const [payout, ...others] = sandbox.state().payouts
  assert.equal([(await requestPayout(sandbox.url)).body.id, others], [payout?.id, []])
})
contract.run()

const delivery = withSandbox(suite('delivery'))
delivery('repeats a webhook-id until 2xx, holds up no other', async ({ sandbox, receiver, statuses }) => {
  statuses.p1 = [500, 302, 404]
  sandbox.switches({ event_delay_ms: 20 })
  for (const n of [1, 2]) await requestPayout(sandbox.url, n)
  await allDelivered(sandbox)
  const references = receiver.received.map(({ data }) => data.reference)
  assert.equal([...references].sort(), ['p1', 'p1', 'p1', 'p1', 'p2'])
  assert.is(new Set(receiver.received.map(({ id }) => id)).size, 2)
  assert.is(sandbox.state().events[0]?.attempts, 4)
})

delivery('duplicates of a refused event all arrive', async ({ sandbox, receiver, statuses }) => {
  statuses.p1 = [500, 200, 500]
  sandbox.switches({ duplicate_events: 2 })
  await requestPayout(sandbox.url)
  await allDelivered(sandbox)
  assert.is(receiver.received.length, 5)
  assert.is(new Set(receiver.received.map(({ id }) => id)).size, 1)
  assert.is(sandbox.state().events[0]?.copies_sent, 3)
})

delivery('goes by the given clock: money moves when due, its event is held', async ({ receiver }) => {
  let clock = Date.now()
  const sandbox = await startSandbox(sandboxOptions({ webhookUrl: receiver.webhookUrl, now: () => clock }))
  const seen = () => [sandbox.state().payouts[0]?.status, receiver.received.length]
  const pass = (ms: number) => {
    clock += ms
    sandbox.wake()
  }
  sandbox.switches({ event_delay_ms: 60_000, hold_events_until: clock + 90_000 })
  await requestPayout(sandbox.url)
  pass(59_999)
  assert.equal(seen(), ['processing', 0])
  pass(1)
  assert.equal(seen(), ['paid', 0])
  pass(30_000)
  await allDelivered(sandbox)
  assert.equal(seen(), ['paid', 1])
  await sandbox.close()
})

delivery('waits for the address of its receiver; closing twice ends the wait', async ({ receiver }) => {
  let url: string | null = null
  const early = await startSandbox(sandboxOptions({ webhookUrl: () => url }))
  await requestPayout(early.url)
  url = receiver.webhookUrl()
  await allDelivered(early)
  assert.is(receiver.received.length, 1)
  url = null
  await requestInvoice(early.url)
  await Promise.all([early.close(), early.close()])
})

delivery('a wrong secret, an empty key or a taken port stops the start', async ({ sandbox }) => {
  const refusalOf = (over: object) =>
    messageOf(startSandbox(sandboxOptions({ webhookUrl: () => null, ...over })))
  assert.match(await refusalOf({ webhookSecret: 'not base64!' }), /webhook secret must be base64/)
  assert.match(await refusalOf({ apiKey: '' }), /API key is empty/)
  assert.match(await refusalOf({ port: Number(new URL(sandbox.url).port) }), /EADDRINUSE/)
})
delivery.run()

const durability = withSandbox(suite('the file of the sandbox'))
durability('keeps invoices, keys, switches and undelivered events at a restart', async (context) => {
  const { databasePath, receiver, statuses } = context
  statuses.p1 = [500]
  const options = { databasePath, webhookUrl: receiver.webhookUrl }
  const first = await startSandbox(sandboxOptions({ ...options, retryBaseMs: 60_000 }))
  first.switches({ fail_next_payouts: 3 })
  const made = await requestPayout(first.url)
  await eventually(() => first.state().events[0]?.attempts === 1)
  let clock = Date.now()
  first.switches({ hold_events_until: clock + 60_000 })
  await requestInvoice(first.url)
  await first.close()
  const second = await startSandbox(sandboxOptions({ ...options, now: () => clock }))
  assert.is(second.switches().fail_next_payouts, 2)
  assert.is(second.state().invoices.length, 1)
  const again = await requestPayout(second.url)
  assert.is(again.body.id, made.body.id)
  clock += 61_000
  second.wake()
  await allDelivered(second)
  const [attempted, repeated] = receiver.received.filter(({ type }) => type === 'payout.failed')
  assert.is(receiver.received.length, 3)
  assert.equal(repeated, attempted, 'the same webhook-id and body')
  await second.close()
})

durability('loses neither an answered call nor its event by kill -9', async ({ databasePath, receiver }) => {
  const options = { databasePath, host: '127.0.0.1', port: 0, apiKey: API_KEY, webhookSecret: SECRET }
  const script = `
    import { startSandbox } from ${JSON.stringify(new URL('./start-sandbox.ts', import.meta.url).href)}
    const sandbox = await startSandbox({ ...${JSON.stringify(options)}, webhookUrl: () => null })
    process.stdout.write(sandbox.url)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const url = String(await once(child.stdout, 'data'))
  const calls = Array.from({ length: 8 }, (_, n) => requestPayout(url, n))
  const answered = (await Promise.all(calls)).map(({ body }) => body.id).sort()
  child.kill('SIGKILL')
  await exited
  const sandbox = await startSandbox(sandboxOptions({ databasePath, webhookUrl: receiver.webhookUrl }))
  await allDelivered(sandbox)
  const { payouts } = sandbox.state()
  assert.equal(payouts.map(({ id }) => id).sort(), answered)
  assert.equal(receiver.received.map(({ data }) => data.payout_id).sort(), answered)
  await sandbox.close()
})
durability.run()
