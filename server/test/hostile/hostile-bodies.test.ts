// proof only
import { randomUUID } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { standardWebhooks } from '../../processor/signatures/choose-scheme.ts'
import { type Forked, forkModule } from '../testkit/forked.ts'
import { orderHeaders } from '../testkit/orders.ts'
import { PROOF_FORM, proofCount, proofDialects } from '../testkit/proof-size.ts'
import { fc } from '../testkit/property.ts'
import { generatedBody, type HostileBody, hostileBodies } from './hostile-bodies.ts'
import type { Stall, StallTarget } from './stall-service.ts'

/** Generated bodies over all databases, besides the named shapes. */
const GENERATED = proofCount('HOSTILE_BODIES', 2)
/** The bound of 50 ms of CPU time, as long as this machine needs for it. */
const LONGEST_STALL_MS = 50 * slowness()
/** The machine may have been busy; what takes long by itself takes long each time. */
const TRIES = 3

/** How many times slower this machine is than one that parses 2 MiB of small JSON objects in 10 ms of CPU time; at least 1. */
function slowness(): number {
  const text = JSON.stringify(
    Array.from({ length: 56_000 }, (_, number) => ({ number, name: `kurta ${number}` })),
  )
  const times = Array.from({ length: 7 }, () => {
    const before = process.cpuUsage()
    JSON.parse(text)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  })
  return Math.max(1, (times.sort((a, b) => a - b)[3] ?? 0) / 10)
}

const dialects = proofDialects()

for (const dialect of dialects) {
  const it = suite(`hostile bodies on ${dialect}`)
  let child: Forked
  let target: StallTarget
  let worst = { shape: '', ms: 0 }
  let sent = 0

  it.before(async () => {
    child = forkModule(new URL('stall-service.ts', import.meta.url), dialect)
    target = await child.next()
  })
  it.after(async () => {
    child.send('stop')
    await child.ended
  })

  const headersFor = {
    '/webhooks/store-sales': (body: Buffer) => orderHeaders(target, randomUUID(), body),
    '/webhooks/processor': (body: Buffer) =>
      standardWebhooks.sign({
        deliveryId: randomUUID(),
        rawBody: body,
        secret: target.processorSecret,
        now: Date.now(),
      }),
  }
  type Route = keyof typeof headersFor

  const stallOf = async (route: Route, body: Buffer): Promise<Stall> => {
    await child.ask('begin')
    const headers = { 'content-type': 'application/json', ...headersFor[route](body) }
    const answer = await fetch(`${target.url}${route}`, {
      method: 'POST',
      headers,
      body: new Uint8Array(body),
    })
    assert.is(answer.status, 200, await answer.text())
    sent += 1
    return child.ask<Stall>('end')
  }
  const check = async (route: Route, { shape, body }: HostileBody) => {
    assert.ok(body.length <= 2 * 1024 * 1024, shape)
    let best = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < TRIES && best >= LONGEST_STALL_MS; tries += 1) {
      const { cpuMs, state } = await stallOf(route, body)
      assert.ok(['done', 'ignored', 'set_aside'].includes(state), `${shape}: ${state}`)
      best = Math.min(best, cpuMs)
    }
    if (best > worst.ms) worst = { shape: `${shape} to ${route}`, ms: best }
    assert.ok(best < LONGEST_STALL_MS, `${shape} to ${route} keeps the loop busy for ${best} ms`)
  }

  it('keep the event loop busy for less than 50 ms of CPU time, taken in and applied', async () => {
    for (const [index, body] of hostileBodies().entries()) {
      // An example sends each shape to one route.
      const even = index % 2 === 0
      if (PROOF_FORM || even) await check('/webhooks/store-sales', body)
      if (PROOF_FORM || !even) await check('/webhooks/processor', body)
    }
  })

  it('so do generated ones', async () => {
    const property = fc.asyncProperty(
      generatedBody,
      fc.constantFrom<Route>('/webhooks/store-sales', '/webhooks/processor'),
      (body, route) => check(route, body),
    )
    const run = await fc.check(property, {
      numRuns: Math.ceil(GENERATED / dialects.length),
      endOnFailure: true,
    })
    assert.not(
      run.failed,
      `${run.errorInstance}\nTEST_SEED=${run.seed} HOSTILE_BODIES=${GENERATED} repeats it.`,
    )
    console.log(
      `\nsize: hostile bodies on ${dialect}: ${sent} sent, longest stall ${worst.ms} ms (${worst.shape.slice(0, 200)})`,
    )
  })

  it.run()
}
