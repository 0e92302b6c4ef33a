// own process
// long
// database: none

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'undici'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { seededRandom } from '../../server/test/testkit/seeded-random.ts'
import { isAlive } from '../test/is-alive.ts'
import { painter } from './layout.ts'
import { type DemoResult, runDemo } from './run-demo.ts'
import type { StepName } from './steps.ts'

/** What the orders of the story add up to; worked out by hand from the fixtures' manifest. */
const FIGURES = {
  merchant: { accepted: 5, rejected: 6, unbilled: '110.00', billed: '1935.79', paid: '1935.79' },
  creator: { pending: '100.00', released: '0.00', in_transit: '0.00', paid: '1759.81' },
  platform: { fees: '185.98', credits: '0.00', clearing: '175.98' },
}

/** Demos of someone else on this machine must not be taken for ours. */
const OWN_TMP = mkdtempSync(join(tmpdir(), 'demo-test-'))
process.env.TMPDIR = OWN_TMP
const started: number[] = []

test.after(() => {
  for (const pid of started) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  rmSync(OWN_TMP, { recursive: true, force: true })
})

interface Disturbance {
  onServer?(pid: number): void
  onStep?(name: StepName, pid: number): void
}

/** Runs a demo; answers what came of it, what it said, and the pids of its servers. */
async function run(disturbance: Disturbance = {}, { keep = false, abort = new AbortController() } = {}) {
  const pids: number[] = []
  const lines: string[] = []
  const result = await runDemo({
    print: (line) => lines.push(line),
    paint: painter(false),
    keep,
    signal: abort.signal,
    onServer: (pid) => {
      pids.push(pid)
      started.push(pid)
      disturbance.onServer?.(pid)
    },
    onStep: (name) => disturbance.onStep?.(name, pids.at(-1) ?? 0),
  }).catch((error: unknown) => ({ error }))
  if (!keep) for (const pid of pids) assert.not(isAlive(pid), `server ${pid} is still there`)
  return { result, lines }
}

function demoFolders(): string[] {
  return readdirSync(OWN_TMP)
}

function assertComplete(result: DemoResult | { error: unknown }): asserts result is DemoResult {
  if ('error' in result) throw result.error
  assert.equal(
    result.checks.filter((check) => !check.ok),
    [],
  )
  assert.ok(result.ok)
  assert.equal(result.figures, FIGURES)
}

test('undisturbed, it ends in the figures that add up by hand', async () => {
  const { result, lines } = await run({}, { keep: true })
  assertComplete(result)
  assert.is(result.restarts, 0)
  assert.ok(result.invariants.length > 10)
  for (const amount of ['1,935.79', '1,759.81', '175.98', '110.00']) {
    assert.ok(
      lines.some((line) => line.includes(amount)),
      `${amount} is printed`,
    )
  }
  await assertKept(result.kept)
})

/** The server goes on and knows the printed credentials; ended as the demo says, it leaves nothing. */
async function assertKept(kept: DemoResult['kept']): Promise<void> {
  assert.ok(kept)
  const [merchant] = kept.accounts
  const answer = await request(`${kept.url}/sales`, {
    headers: { authorization: `Bearer ${merchant?.token}` },
  })
  const { items } = (await answer.body.json()) as { items: unknown[] }
  assert.is(items.length, 11)
  process.kill(kept.pid, 'SIGTERM')
  await eventually(() => !isAlive(kept.pid))
  rmSync(kept.folder, { recursive: true })
}

test('interrupted, it ends its server and removes its folder', async () => {
  const abort = new AbortController()
  const { result } = await run({ onStep: (name) => name === 'people' && abort.abort() }, { abort })
  assert.ok('error' in result)
  assert.equal(demoFolders(), [])
})

const randomKills = Number(process.env.DEMO_KILLS ?? 0)

if (randomKills > 0) {
  test('kill -9 before it listens and after many steps ends in the same figures, with nothing left behind', async () => {
    const killAfter = new Set<StepName>([
      'people',
      'applications',
      'clicks',
      'orders',
      'later-order',
      'payout',
    ])
    const wanted = killAfter.size + 1
    let starts = 0
    const { result } = await run({
      onServer(pid) {
        starts += 1
        if (starts === 1) process.kill(pid, 'SIGKILL')
      },
      onStep(name, pid) {
        if (killAfter.delete(name)) process.kill(pid, 'SIGKILL')
      },
    })
    assertComplete(result)
    assert.is(result.restarts, wanted)
    assert.is(result.kept, null)
    assert.equal(demoFolders(), [])
  })

  test(`${randomKills} kills at random moments end in the same figures`, async () => {
    const seed = Number(process.env.DEMO_SEED ?? Date.now() % 2 ** 31)
    console.log(`DEMO_SEED=${seed}`)
    const random = seededRandom(seed)
    for (let left = randomKills; left > 0; ) {
      let inThisRun = Math.min(left, 4)
      left -= inThisRun
      const timers: NodeJS.Timeout[] = []
      const { result } = await run({
        onServer(pid) {
          if (inThisRun === 0) return
          inThisRun -= 1
          timers.push(setTimeout(() => isAlive(pid) && process.kill(pid, 'SIGKILL'), random() * 5000))
        },
      })
      for (const timer of timers) clearTimeout(timer)
      assertComplete(result)
      console.log(`${left} kills left; ${result.restarts} restarts in ${result.took_ms} ms`)
    }
  })
}

test.run()
