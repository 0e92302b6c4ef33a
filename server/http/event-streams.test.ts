// database: none
import { once } from 'node:events'
import fastify from 'fastify'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { publicProcedure, router } from '../platform/api/procedure.ts'
import { openTestbed } from '../test/testkit/testbed.ts'
import { registerTrpc } from './trpc.ts'

test('a subscription ends when its connection closes', async () => {
  const bed = await openTestbed('sqlite')
  const ended = Promise.withResolvers<boolean>()
  const ticks = publicProcedure({ summary: 'Ticks' })
    .input(z.strictObject({}).prefault({}))
    .subscription(async function* ({ ctx: { gone } }) {
      yield 'first'
      if (gone && !gone.aborted) await once(gone, 'abort')
      ended.resolve(gone?.aborted ?? false)
    })
  const server = fastify()
  registerTrpc(server, bed.platform, router({ ticks }))
  const base = await server.listen({ host: '127.0.0.1', port: 0 })
  try {
    const leaving = new AbortController()
    const answer = await fetch(`${base}/trpc/ticks`, { signal: leaving.signal })
    const reader = answer.body?.getReader()
    let text = ''
    while (!text.includes('first')) text += new TextDecoder().decode((await reader?.read())?.value)
    leaving.abort()
    assert.is(await ended.promise, true)
  } finally {
    await server.close()
    await bed.close()
  }
})

test('a closing server ends its streams with the time to reconnect after', async () => {
  const bed = await openTestbed('sqlite')
  const ticks = publicProcedure({ summary: 'Ticks' })
    .input(z.strictObject({}).prefault({}))
    .subscription(async function* ({ ctx: { gone } }) {
      yield 'first'
      if (gone && !gone.aborted) await once(gone, 'abort')
    })
  const server = fastify()
  registerTrpc(server, bed.platform, router({ ticks }))
  const base = await server.listen({ host: '127.0.0.1', port: 0 })
  const reader = (await fetch(`${base}/trpc/ticks`)).body?.getReader()
  let text = ''
  const read = async () => {
    text += new TextDecoder().decode((await reader?.read())?.value)
  }
  while (!text.includes('first')) await read()
  const closed = server.close()
  while (!/\nretry: \d{3,4}\n/.test(text)) await read()
  // Not an end, which would tell the client that the subscription is over.
  assert.not.match(text, /event: return/)
  await closed
  await bed.close()
})

test.run()
