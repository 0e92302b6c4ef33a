import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import fastify from 'fastify'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../test/testkit/eventually.ts'
import { openWebTestbed } from '../test/testkit/web.ts'
import { keepConnections } from './connections.ts'

const it = suite('the end of the server')

it('ends a connection after the answer to a broken request, though the client keeps its side open, and waits for none on which nothing was asked', async () => {
  const bed = await openWebTestbed('sqlite')
  const port = Number(new URL(bed.base).port)
  const broken = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let answer = ''
  broken.on('data', (bytes) => {
    answer += bytes
  })
  broken.write('rubbish\r\n\r\n')
  await once(broken, 'end')
  assert.match(answer, /^HTTP\/1\.1 400 /)
  const connections = promisify(bed.server.server.getConnections.bind(bed.server.server))
  await eventually(connections, (open) => open === 0)
  broken.destroy()
  // Node itself would end such a connection after a minute.
  Object.assign(bed.server.server, { headersTimeout: 0, requestTimeout: 0 })
  const unused = connect(port, '127.0.0.1')
  await once(unused, 'connect')
  assert.is((await bed.ask('GET', '/healthz')).status, 200)
  const closed = once(unused, 'close')
  await bed.close()
  await closed
})

it('gives one address a share of the connections, which closed ones leave', async () => {
  const server = fastify()
  keepConnections(server, 2)
  await server.listen({ port: 0, host: '127.0.0.1' })
  const { port } = server.server.address() as AddressInfo
  const open = async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  }
  const [first] = [await open(), await open()]
  const refused = await open()
  await once(refused, 'close')
  const left = once(first, 'close')
  first.end()
  await left
  await eventually(async () => {
    const socket = await open()
    const answer = await Promise.race([once(socket, 'close').then(() => ''), health(socket)])
    return answer.startsWith('HTTP/1.1 404')
  })
  await server.close()
})

it('ends a connection after the answer that was under way when it closed', async () => {
  // Without end, where the closing server sets none.
  const server = fastify({ keepAliveTimeout: 0 })
  keepConnections(server, null)
  const [asked, ready] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()]
  server.get('/slow', () => {
    asked.resolve()
    return ready.promise
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  const { port } = server.server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1').resume()
  socket.write('GET /slow HTTP/1.1\r\nhost: a\r\n\r\n')
  await asked.promise
  const closed = server.close()
  await eventually(() => !server.server.listening)
  ready.resolve('late')
  try {
    await eventually(() => socket.closed)
  } finally {
    socket.destroy()
  }
  await closed
})

async function health(socket: Socket): Promise<string> {
  socket.write('GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  const [bytes] = await once(socket, 'data')
  return String(bytes)
}

it.run()
