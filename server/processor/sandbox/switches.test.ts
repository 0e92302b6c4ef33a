import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../test/testkit/eventually.ts'
import {
  API_KEY,
  ask,
  invoiceBody,
  payoutBody,
  sandboxOptions,
  startReceiver,
  withSandbox,
} from '../../test/testkit/sandbox-receiver.ts'
import { createHttpProcessor } from '../http-processor.ts'
import { startSandbox } from './start-sandbox.ts'
import { WELL_BEHAVED } from './switches.ts'

const references = (received: { data: Record<string, string> }[]) =>
  received.map((event) => event.data.reference)

async function makePayouts(url: string, count: number): Promise<void> {
  for (let n = 1; n <= count; n += 1) {
    await ask(url, 'POST', '/payouts', { body: payoutBody(`p${n}`), key: `k${n}` })
  }
}

const answers = suite('switches on answers')
answers('are set over HTTP, in parts, and refused when invalid', async () => {
  await withSandbox(async (sandbox) => {
    const put = (body: unknown) => ask(sandbox.url, 'PUT', '/_sandbox/switches', { body })
    assert.equal((await put({ refuse_next: 2 })).body, { ...WELL_BEHAVED, refuse_next: 2 })
    assert.equal((await put({ stall_ms: 7 })).body, { ...WELL_BEHAVED, refuse_next: 2, stall_ms: 7 })
    for (const wrong of [
      { refuse_next: -1 },
      { event_order: 'sorted' },
      { typo: 1 },
      [],
      { hold_events: 'yes' },
    ]) {
      assert.is((await put(wrong)).status, 422, JSON.stringify(wrong))
    }
    const state = await ask(sandbox.url, 'GET', '/_sandbox/state')
    assert.equal(state.body, { invoices: [], payouts: [], events: [], switches: sandbox.switches() })
    assert.throws(() => sandbox.switches({ refuse_next: 0.5 }))
  })
})

answers('refuse_next is final for its key; error_next and limit_next are not', async () => {
  await withSandbox(async (sandbox) => {
    const post = (key: string) => ask(sandbox.url, 'POST', '/invoices', { body: invoiceBody(), key })
    sandbox.switches({ refuse_next: 1 })
    assert.is((await post('k1')).status, 422)
    assert.is((await post('k1')).status, 422)
    sandbox.switches({ error_next: 1, limit_next: 1 })
    const limited = await post('k2')
    assert.equal([limited.status, limited.headers.get('retry-after')], [429, '1'])
    assert.is((await post('k2')).status, 500)
    assert.is(sandbox.state().invoices.length, 0)
    assert.is((await post('k2')).status, 201)
  })
})

answers(
  'a lost, a garbled and a late answer leave the outcome unknown, and the look-up finds the payout',
  async () => {
    await withSandbox(async (sandbox) => {
      const processor = createHttpProcessor({ url: sandbox.url, apiKey: API_KEY, timeoutMs: 2000 })
      const misbehave = [
        { lose_next_answers: 1 },
        { garble_next_answers: 1 },
        // The call takes effect after its caller has given up.
        { stall_next: 1, stall_ms: 2500 },
      ]
      for (const [n, change] of misbehave.entries()) {
        sandbox.switches(change)
        const { destination } = payoutBody()
        const call = { attemptId: `a${n}`, reference: `r${n}`, amount: 100_000, destination }
        assert.is((await processor.createPayout(call)).kind, 'unknown', JSON.stringify(change))
        await eventually(() => sandbox.state().payouts.length > n)
        const found = await processor.findPayouts({ reference: `r${n}`, attemptIds: [] })
        const again = await processor.createPayout(call)
        assert.is(again.kind === 'created' && again.id, found.kind === 'found' && found.items[0]?.id)
        assert.is(sandbox.state().payouts.length, n + 1)
      }
      await processor.close()
    })
  },
)

answers('events_before_answer: the event is there before the caller knows the id', async () => {
  await withSandbox(async (sandbox, receiver) => {
    sandbox.switches({ events_before_answer: true, event_delay_ms: 60_000, lose_next_answers: 1 })
    const lost = await ask(sandbox.url, 'POST', '/invoices', { body: invoiceBody(), key: 'k1' }).catch(
      () => null,
    )
    assert.is(lost, null)
    assert.is(receiver.received.length, 1)
    const again = await ask(sandbox.url, 'POST', '/invoices', { body: invoiceBody(), key: 'k1' })
    assert.is(again.body.id, receiver.received[0]?.data.invoice_id)
    await sandbox.idle()
    assert.is(receiver.received.length, 1)
  })
})
answers.run()

const events = suite('switches on events')
events('fail_next_payouts counts payouts only, and gives the reason', async () => {
  await withSandbox(async (sandbox, receiver) => {
    sandbox.switches({ fail_next_payouts: 1, failure_reason: 'account closed', confirm_amount_delta: 5 })
    await ask(sandbox.url, 'POST', '/invoices', { body: invoiceBody(), key: 'i' })
    await makePayouts(sandbox.url, 2)
    await sandbox.idle()
    assert.equal(
      receiver.received.map((event) => event.type),
      ['billing.payment_confirmed', 'payout.failed', 'payout.confirmed'],
    )
    assert.equal(
      receiver.received.map((event) => [event.data.amount, event.data.reason]),
      [
        ['1250.05', undefined],
        ['1000.00', 'account closed'],
        ['1000.05', undefined],
      ],
    )
    assert.equal(
      sandbox.state().payouts.map((payout) => [payout.status, payout.amount]),
      [
        ['failed', '1000.00'],
        ['paid', '1000.00'],
      ],
    )
  })
})

events('hold_events: money moves, nothing is sent until released', async () => {
  await withSandbox(async (sandbox, receiver) => {
    sandbox.switches({ hold_events: true })
    await makePayouts(sandbox.url, 1)
    await sandbox.idle()
    assert.is(receiver.received.length, 0)
    assert.is(sandbox.state().payouts[0]?.status, 'paid')
    sandbox.switches({ hold_events: false })
    await sandbox.idle()
    assert.is(receiver.received.length, 1)
  })
})

events('hold_events_until: a hold that ends by itself', async () => {
  const receiver = await startReceiver()
  let clock = Date.now()
  const sandbox = await startSandbox(sandboxOptions({ webhookUrl: receiver.url, now: () => clock }))
  sandbox.switches({ hold_events_until: clock + 60_000 })
  await makePayouts(sandbox.url, 1)
  await sandbox.idle()
  assert.is(receiver.received.length, 0)
  assert.is(sandbox.state().payouts[0]?.status, 'paid')
  clock += 60_000
  await sandbox.idle()
  assert.is(receiver.received.length, 1)
  await sandbox.close()
  await receiver.close()
})

events('event_order and duplicate_events, the same on every run', async () => {
  const run = async (change: Parameters<Awaited<ReturnType<typeof startSandbox>>['switches']>[0]) => {
    let sent: (string | undefined)[] = []
    await withSandbox(async (sandbox, receiver) => {
      sandbox.switches({ ...change, hold_events: true })
      await makePayouts(sandbox.url, 4)
      sandbox.switches({ hold_events: false })
      await sandbox.idle()
      sent = references(receiver.received)
      const ids = new Set(receiver.received.map((event) => event.id))
      assert.is(ids.size, 4, 'copies keep the webhook-id')
    })
    return sent
  }
  assert.equal(await run({}), ['p1', 'p2', 'p3', 'p4'])
  assert.equal(await run({ event_order: 'reversed' }), ['p4', 'p3', 'p2', 'p1'])
  assert.equal((await run({ duplicate_events: 1 })).join(' '), 'p1 p1 p2 p2 p3 p3 p4 p4')
  const shuffled = await run({ event_order: 'shuffled', duplicate_events: 2, order_seed: 5 })
  assert.equal([...shuffled].sort().join(' '), 'p1 p1 p1 p2 p2 p2 p3 p3 p3 p4 p4 p4')
  assert.not.equal(shuffled, [...shuffled].sort())
  assert.equal(await run({ event_order: 'shuffled', duplicate_events: 2, order_seed: 5 }), shuffled)
  assert.not.equal(await run({ event_order: 'shuffled', duplicate_events: 2, order_seed: 6 }), shuffled)
})

events('duplicates of an event that is refused at first all arrive in the end', async () => {
  await withSandbox(
    async (sandbox, receiver) => {
      sandbox.switches({ duplicate_events: 2 })
      await makePayouts(sandbox.url, 1)
      await sandbox.idle()
      assert.is(receiver.received.length, 5)
      assert.is(sandbox.state().events[0]?.copies_sent, 3)
    },
    [500, 200, 500],
  )
})

events('event_delay_ms goes by the given clock; idle can wait for what is due later', async () => {
  const receiver = await startReceiver()
  let clock = Date.now()
  const sandbox = await startSandbox(sandboxOptions({ webhookUrl: receiver.url, now: () => clock }))
  sandbox.switches({ event_delay_ms: 60_000 })
  await ask(sandbox.url, 'POST', '/invoices', { body: invoiceBody(), key: 'k1' })
  await sandbox.idle()
  assert.is(receiver.received.length, 0)
  assert.is(sandbox.state().invoices[0]?.status, 'open')
  clock += 59_999
  sandbox.wake()
  await sandbox.idle()
  assert.is(sandbox.state().invoices[0]?.status, 'open')
  clock += 1
  await sandbox.idle({ scheduled: true })
  assert.is(receiver.received.length, 1)
  assert.is(sandbox.state().invoices[0]?.status, 'paid')
  await sandbox.close()
  await receiver.close()
})

events('a short delay runs on real timers', async () => {
  await withSandbox(async (sandbox, receiver) => {
    sandbox.switches({ event_delay_ms: 30 })
    await makePayouts(sandbox.url, 2)
    await sandbox.idle({ scheduled: true })
    assert.equal(references(receiver.received), ['p1', 'p2'])
  })
})
events.run()
