import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  API_KEY,
  ask,
  invoiceBody,
  payoutBody,
  SECRET,
  sandboxOptions,
  startReceiver,
} from '../../test/testkit/sandbox-receiver.ts'
import { openSandboxStore } from './sandbox.store.ts'
import { startSandbox } from './start-sandbox.ts'

async function inDirectory(run: (databasePath: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'sandbox-'))
  try {
    await run(join(directory, 'sandbox.db'))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

test('invoices, keys, switches and undelivered events outlive a restart', async () => {
  await inDirectory(async (databasePath) => {
    const receiver = await startReceiver({ statuses: [500] })
    const first = await startSandbox(
      sandboxOptions({ databasePath, webhookUrl: receiver.url, retryBaseMs: 60_000 }),
    )
    first.switches({ fail_next_payouts: 3 })
    const arrival = receiver.next()
    const made = await ask(first.url, 'POST', '/payouts', { body: payoutBody(), key: 'k1' })
    await arrival
    first.switches({ hold_events: true })
    await ask(first.url, 'POST', '/invoices', { body: invoiceBody(), key: 'k2' })
    await first.close()
    const [attempted] = receiver.received

    let clock = Date.now()
    const second = await startSandbox(
      sandboxOptions({ databasePath, webhookUrl: receiver.url, now: () => clock }),
    )
    assert.is(second.switches().fail_next_payouts, 2)
    assert.is(second.state().invoices.length, 1)
    const again = await ask(second.url, 'POST', '/payouts', { body: payoutBody(), key: 'k1' })
    assert.is(again.body.id, made.body.id)
    clock += 60_000
    second.switches({ hold_events: false })
    await second.idle()
    assert.is(receiver.received.length, 3)
    const repeated = receiver.received.find((event, n) => n > 0 && event.type === 'payout.failed')
    assert.equal(repeated, attempted, 'the same webhook-id and body')
    await second.close()
    await receiver.close()
  })
})

test('kill -9 loses neither an answered call nor its event', async () => {
  await inDirectory(async (databasePath) => {
    const receiver = await startReceiver()
    const options = { databasePath, host: '127.0.0.1', port: 0, apiKey: API_KEY, webhookSecret: SECRET }
    const script = `
      import { startSandbox } from ${JSON.stringify(new URL('./start-sandbox.ts', import.meta.url).href)}
      const sandbox = await startSandbox({ ...${JSON.stringify(options)}, webhookUrl: () => null })
      process.stdout.write(sandbox.url)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exited = new Promise((resolve) => child.once('exit', resolve))
    const url = await new Promise<string>((resolve) =>
      child.stdout.once('data', (chunk) => resolve(String(chunk))),
    )
    const bodies = Array.from({ length: 8 }, (_, n) => payoutBody(`p${n}`))
    const made = await Promise.all(
      bodies.map((body, n) => ask(url, 'POST', '/payouts', { body, key: `k${n}` })),
    )
    child.kill('SIGKILL')
    await exited

    const sandbox = await startSandbox(sandboxOptions({ databasePath, webhookUrl: receiver.url }))
    await sandbox.idle({ scheduled: true })
    const answered = made.map((answer) => answer.body.id).sort()
    assert.equal(
      sandbox
        .state()
        .payouts.map((payout) => payout.id)
        .sort(),
      answered,
    )
    assert.equal(receiver.received.map((event) => event.data.payout_id).sort(), answered)
    await sandbox.close()
    await receiver.close()
  })
})

test('the file is written through to the disk', async () => {
  await inDirectory(async (databasePath) => {
    const store = openSandboxStore(databasePath)
    assert.equal(store.durability(), { journal_mode: 'wal', synchronous: 2 })
    store.close()
  })
})

test.run()
