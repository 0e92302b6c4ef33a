// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createClickRecorder } from '../clicks/clicks.service.ts'
import { createInboxRecorder } from '../inbox/intake.service.ts'
import { createSignatureScheme } from '../processor/signatures/choose-scheme.ts'
import { openTestbed } from '../test/testkit/testbed.ts'
import { createHealthServer } from './health.ts'

test('a process without the role web shows health, readiness and metrics, and nothing else', async () => {
  const bed = await openTestbed('sqlite')
  const { platform } = bed
  let pending = ['00099-later']
  let skew = 0
  const server = createHealthServer({
    platform,
    clicks: createClickRecorder(platform),
    inbox: createInboxRecorder(platform),
    processorSignature: { scheme: createSignatureScheme({ scheme: 'standard-webhooks' }), secrets: [] },
    pendingMigrations: async () => pending,
    clockSkew: () => skew,
  })
  const base = await server.listen({ host: '127.0.0.1', port: 0 })
  const statusOf = async (path: string) => (await fetch(`${base}${path}`)).status
  assert.is(await statusOf('/healthz'), 200)
  assert.is(await statusOf('/readyz'), 503)
  pending = []
  assert.is(await statusOf('/readyz'), 200)
  for (const [ms, status] of [
    [2001, 503],
    [-2001, 503],
    [2000, 200],
  ] as const) {
    skew = ms
    assert.is(await statusOf('/readyz'), status)
  }
  assert.match(await (await fetch(`${base}/metrics`)).text(), /affiliate_schedule_finished/)
  assert.is(await statusOf('/offers'), 404)
  await server.close()
  await bed.close()
})

test.run()
