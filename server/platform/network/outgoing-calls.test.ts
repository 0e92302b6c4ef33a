// database: none
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { rejectionOf } from '../../test/testkit/rejection.ts'
import { openOutgoingCalls } from './outgoing-calls.ts'

interface World {
  server: Server
  url: string
  /** Paths that were asked for. */
  heard: string[]
}

const it = suite<World>('outgoing calls')

it.before.each(async (world) => {
  world.heard = []
  // What is asked for under /never is not answered.
  world.server = createServer((request, response) => {
    world.heard.push(request.url ?? '')
    if (request.url !== '/never') response.end('hello')
  })
  await once(world.server.listen(0, '127.0.0.1'), 'listening')
  world.url = `http://127.0.0.1:${(world.server.address() as AddressInfo).port}`
})
it.after.each(({ server }) => {
  server.closeAllConnections()
  server.close()
})

const failureOf = async (work: Promise<unknown>) =>
  ((await rejectionOf(work)) as Error | null)?.name ?? 'none'

// First, while undici is not loaded yet.
it('sends nothing once it is closed, not even what waited for the loading', async ({ url, heard }) => {
  const calls = openOutgoingCalls({})
  const asked = failureOf(calls.request(url, { method: 'GET' }, 5000))
  await calls.close()
  assert.is(await asked, 'ClientDestroyedError')
  assert.is(await failureOf(calls.request(url, { method: 'GET' }, 5000)), 'ClientDestroyedError')
  assert.equal(heard, [])
})

it('answers, and gives up after so long', async ({ url, heard }) => {
  const calls = openOutgoingCalls({})
  const { statusCode, body } = await calls.request(`${url}/now`, { method: 'GET' }, 5000)
  assert.equal([statusCode, await body.text()], [200, 'hello'])
  assert.is(await failureOf(calls.request(`${url}/never`, { method: 'GET' }, 50)), 'TimeoutError')
  assert.equal(heard, ['/now', '/never'])
  await calls.close()
})

it('sends nothing when it was closed before its first call', async ({ url, heard }) => {
  const calls = openOutgoingCalls({})
  await calls.close()
  assert.is(await failureOf(calls.request(url, { method: 'GET' }, 5000)), 'ClientDestroyedError')
  assert.equal(heard, [])
})

it.run()
