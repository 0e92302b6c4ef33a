// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { appRouter } from '../../http/router.ts'
import { proceduresOf, routesOf } from '../../platform/api/procedure.ts'
import { testDialects } from '../testkit/databases.ts'
import { type Forked, forkModule } from '../testkit/forked.ts'
import { proofCount } from '../testkit/proof-size.ts'
import { either, fc } from '../testkit/property.ts'
import { edgeRequest } from './edge-requests.ts'
import type { Aftermath, Targets } from './fuzzed-service.ts'
import { flawOf, rawFlawOf } from './judge.ts'
import { rawRequest } from './raw-requests.ts'
import { type FuzzRequest, restRequest } from './requests.ts'
import { CONCURRENCY, openPool, sendRaw, sendRequest } from './send.ts'
import { trpcBatch, trpcRequest } from './trpc-requests.ts'
import { processorWebhook, storeWebhook } from './webhook-requests.ts'

/** Over all databases together. */
const REQUESTS = proofCount('FUZZ_REQUESTS', 2000)
/** Fewer requests need not reach most procedures. */
const ENOUGH = 20_000
const dialects = testDialects()
/** Of those, what goes out as bytes over sockets of its own. */
const RAW_SHARE = 0.1
/** Sent together, by as many connections as there are. */
const GROUP = 8 * CONCURRENCY

const records = proceduresOf(appRouter)

function anyRequest(targets: Targets): fc.Arbitrary<FuzzRequest> {
  const routed = records.flatMap((record) =>
    routesOf(record).map((rest) => ({ ...record, meta: { ...record.meta, rest } })),
  )
  // A password takes two cores a while to compare, which all others would have to wait for.
  const weightOf = (name: string) => (/^auth\.(login|register|changePassword)$/.test(name) ? 1 : 8)
  const anyOf = (build: typeof restRequest, of: typeof records) =>
    either(...of.map((record) => [weightOf(record.name), build(record, targets)] as const))
  return either(
    [10, anyOf(restRequest, routed)],
    [6, anyOf(trpcRequest, records)],
    [1, trpcBatch(records, targets)],
    [2, edgeRequest(targets)],
    [2, storeWebhook(targets)],
    [1, processorWebhook(targets)],
  )
}

/** Says of a failure what failed, instead of all that went out together with it. */
async function holds<T>(property: fc.IAsyncProperty<T>, numRuns: number): Promise<void> {
  const run = await fc.check(property, { numRuns, endOnFailure: true })
  if (!run.failed) return
  const why = run.errorInstance instanceof Error ? run.errorInstance.message : String(run.errorInstance)
  throw new Error(`${why}\nTEST_SEED=${run.seed} FUZZ_REQUESTS=${REQUESTS} repeats it.`)
}

/** Does `work` for each, as many at once as there are connections, so that none is timed while it waits for its turn. */
async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values()
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (const item of waiting) await work(item)
    }),
  )
}

function shown({ method, path, headers, body }: FuzzRequest): string {
  return `${method} ${path.slice(0, 500)} ${JSON.stringify(headers).slice(0, 500)} ${body?.toString('latin1').slice(0, 500) ?? ''}`
}

for (const dialect of dialects) {
  const it = suite(`bad input on ${dialect}`)
  const share = Math.ceil(REQUESTS / dialects.length)
  const raw = Math.ceil(share * RAW_SHARE)
  let service: Forked
  let targets: Targets
  const statuses = new Map<number, number>()
  const succeeded = new Set<string>()
  let sent = 0

  it.before(async () => {
    service = forkModule(new URL('fuzzed-service.ts', import.meta.url), dialect)
    targets = await service.next()
  })
  it.after(() => service.kill())

  it('no answer of 500 or above, late, or in another shape than a problem', async () => {
    const pool = openPool(targets.url)
    const ask = (request: FuzzRequest) =>
      sendRequest(pool, request).catch((error) => {
        throw new Error(`${error.message}: ${shown(request)}`)
      })
    const check = async (request: FuzzRequest) => {
      const answer = await ask(request)
      sent += 1
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      if (answer.status < 400) succeeded.add(request.about)
      const flaw = flawOf(request, answer)
      if (flaw) throw new Error(`${flaw}: ${shown(request)} → ${answer.status} ${answer.text.slice(0, 500)}`)
    }
    const property = fc.asyncProperty(
      fc.array(anyRequest(targets), { minLength: GROUP, maxLength: GROUP, size: 'max' }),
      (requests) => inTurns(requests, check),
    )
    try {
      await holds(property, Math.ceil((share - raw) / GROUP))
    } finally {
      await pool.destroy()
    }
  })

  it('no bytes on a socket that it does not answer or close', async () => {
    const check = async (bytes: Buffer) => {
      const answer = await sendRaw(targets.url, bytes)
      sent += 1
      const flaw = rawFlawOf(answer)
      if (flaw) throw new Error(`${flaw}: ${JSON.stringify(bytes.toString('latin1').slice(0, 1500))}`)
    }
    const property = fc.asyncProperty(
      fc.array(rawRequest(targets), { minLength: GROUP, maxLength: GROUP, size: 'max' }),
      (group) => inTurns(group, check),
    )
    await holds(property, Math.ceil(raw / GROUP))
  })

  it('reaches the procedures, and no session is lost', async () => {
    for (const authorization of Object.values(targets.tokens)) {
      const answer = await fetch(`${targets.url}/me`, { headers: { authorization } })
      assert.is(answer.status, 200, await answer.text())
    }
    const about = [...records.map(({ name }) => name), 'batch', 'edges', 'store webhook', 'processor webhook']
    const never = about.filter((name) => !succeeded.has(name))
    console.log(
      `\nsize: fuzz on ${dialect}: ${sent} requests, ${JSON.stringify(Object.fromEntries([...statuses].sort()))}, never succeeded: ${never.join(' ') || 'none'}`,
    )
    if (REQUESTS >= ENOUGH) assert.ok(never.length <= about.length / 5, `too shallow: ${never.join()}`)
    assert.ok(succeeded.size > 0)
  })

  it('left a process that lives, logged no bug, and books in order', async () => {
    const { longestStall, events, breaches } = await service.ask<Aftermath>('stop')
    console.log(`\nsize: fuzz on ${dialect}: ${events} events, longest stall ${longestStall} ms of CPU time`)
    assert.equal(breaches, [])
    assert.equal(service.complaints(), [])
    assert.ok(events > 0)
    assert.equal(await service.ended, 0)
  })

  it.run()
}
