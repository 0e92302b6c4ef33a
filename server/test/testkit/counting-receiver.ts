import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/*
 * A fast receiver of webhooks as a process of its own, which does no work but count. It sends its port when it listens, and the number of
 * different events when it has received as many as its argument says.
 */

const expected = Number(process.argv[2])
const ids = new Set<unknown>()

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    ids.add(request.headers['webhook-id'])
    response.writeHead(204).end()
    if (ids.size === expected) process.send?.({ received: ids.size })
  })
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
