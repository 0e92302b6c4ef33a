import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/**
 * A pooler that refuses every client (`at: 'start'`), or lets them in and answers every statement with this error (`at: 'statement'`).
 * Speaks as much of PostgreSQL's protocol as that takes.
 */
export async function openFakePooler(failure: { at: 'start' | 'statement'; code: string; message: string }) {
  const clients = new Set<Socket>()
  const error = packet('E', `SFATAL\0VFATAL\0C${failure.code}\0M${failure.message}\0\0`)
  const ready = packet('Z', 'I')
  const server = createServer((client) => {
    clients.add(client)
    client.on('error', () => {})
    client.once('data', () => {
      if (failure.at === 'start') return client.end(error)
      client.write(Buffer.concat([packet('R', '\0\0\0\0'), ready]))
      client.on('data', () => client.write(Buffer.concat([error, ready])))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `postgres://shop:se-cret@127.0.0.1:${port}/shop`,
    async close() {
      for (const client of clients) client.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function packet(kind: string, text: string): Buffer {
  const body = Buffer.from(text)
  const head = Buffer.alloc(5)
  head.write(kind)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
