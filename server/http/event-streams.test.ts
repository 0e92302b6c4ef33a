// database: none
import { once } from 'node:events'
import fastify from 'fastify'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { publicProcedure, router } from '../platform/api/procedure.ts'
import { openTestbed } from '../test/testkit/testbed.ts'
import { registerTrpc } from './trpc.ts'

/** A server with one endless subscription, and what reads it; `ended` tells whether its signal aborted. */
async function openTicks() {
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
  const leaving = new AbortController()
  const reader = (await fetch(`${base}/trpc/ticks`, { signal: leaving.signal })).body?.getReader()
  let text = ''
  const readUntil = async (pattern: RegExp) => {
    while (!pattern.test(text)) text += new TextDecoder().decode((await reader?.read())?.value)
    return text
  }
  await readUntil(/first/)
  return { bed, server, ended: ended.promise, leaving, readUntil }
}

test('a subscription ends when its connection closes', async () => {
  const { bed, server, ended, leaving } = await openTicks()
  leaving.abort()
  assert.is(await ended, true)
  await server.close()
  await bed.close()
})

test('a closing server ends its streams with the time to reconnect after', async () => {
  const { bed, server, readUntil } = await openTicks()
  const closed = server.close()
  const text = await readUntil(/\nretry: \d{3,4}\n/)
  // Not an end, which would tell the client that the subscription is over.
  assert.not.match(text, /event: return/)
  await closed
  await bed.close()
})

test.run()
