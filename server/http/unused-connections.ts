import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * Closes, when the server closes, the connections on which no request has ever come: browsers and clients open some in
 * advance, Node does not count them as idle, and nothing else would ever end the wait for them.
 */
export function closeUnusedConnections(server: FastifyInstance): void {
  const open = new Set<Socket>()
  let closing = false
  server.server.on('connection', (socket: Socket) => {
    if (closing) {
      socket.destroy()
      return
    }
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  server.addHook('preClose', async () => {
    closing = true
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  })
}
