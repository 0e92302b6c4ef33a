// proof only
// database: none

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { assertNone } from '../../server/test/testkit/pluck.ts'
import { call } from '../../server/test/testkit/service-bed.ts'
import { isAlive } from '../test/run-affiliate.ts'
import { typeHere } from '../test/run-here.ts'
import { painter } from './report.ts'
import { type DemoOptions, runDemo } from './run-demo.ts'

/** What the orders of the story add up to; worked out by hand from the fixtures' manifest. */
const FIGURES = {
  merchant: { accepted: 5, rejected: 5, unbilled: '110.00', billed: '1935.79', paid: '1935.79' },
  creator: { pending: '100.00', released: '0.00', in_transit: '0.00', paid: '1759.81' },
  platform: { fees: '185.98', credits: '0.00', clearing: '175.98' },
}

const OWN_TMP = mkdtempSync(join(tmpdir(), 'demo-test-'))
process.env.TMPDIR = OWN_TMP
const started: number[] = []

test.after(() => {
  for (const pid of started) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  rmSync(OWN_TMP, { recursive: true, force: true })
})

function run(options: Partial<DemoOptions>) {
  return runDemo({
    print: () => undefined,
    paint: painter(false),
    processor: 'sandbox',
    keep: false,
    signal: new AbortController().signal,
    onStart: (pid) => started.push(pid),
    ...options,
  })
}

test('it ends in the figures that add up by hand, and leaves what --keep promises', async () => {
  const lines: string[] = []
  const { ok, checks, figures, invariants, kept } = await run({
    keep: true,
    print: (line) => lines.push(line),
  })
  assertNone(checks, (check) => !check.ok)
  assert.equal([ok, figures], [true, FIGURES])
  assert.ok(invariants.length > 10)
  for (const amount of ['1,935.79', '1,759.81', '175.98', '110.00']) assert.match(lines.join('\n'), amount)
  assert.ok(kept)
  const { body } = await call(kept.url, 'GET', '/sales', { token: kept.accounts[0]?.token ?? '' })
  assert.is(body.items.length, 10)
  process.kill(kept.pid, 'SIGTERM')
  await eventually(() => !isAlive(kept.pid))
  rmSync(kept.folder, { recursive: true })
})

test('interrupted, or when the service is killed, it ends the service, removes its folder and fails', async () => {
  const typed = [{ after: /1\. {2}/, keys: '\u0003' }]
  const { code, screen } = await typeHere(['demo'], { typed })
  assert.is(code, 1, screen)
  assert.match(screen, /The demo was interrupted; nothing of it is left\./)
  assert.equal(readdirSync(OWN_TMP), [])
  const kill = (title: string) => title.includes('publishes') && process.kill(started.at(-1) ?? 0, 'SIGKILL')
  const error = await run({ onStep: kill }).catch((thrown: unknown) => thrown)
  assert.instance(error, Error)
  assert.not(isAlive(started.at(-1) ?? 0))
  assert.equal(readdirSync(OWN_TMP), [])
})

test.run()
