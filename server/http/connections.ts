import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { ErrorCode } from '../../shared/error-codes.ts'
import { problemOf } from '../platform/api/problem.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { addressKey } from '../platform/network/client-address.ts'
import type { Platform } from '../platform/platform.ts'
import { PROBLEM_TYPE } from './errors.ts'

type BrokenRequest = [status: number, code: ErrorCode, detail: string]

const NOT_HTTP: BrokenRequest = [400, 'validation_failed', 'The request is not valid HTTP.']
/** No error code fits these statuses; the closest one is sent. */
const BROKEN_REQUESTS: Record<string, BrokenRequest> = {
  HPE_HEADER_OVERFLOW: [431, 'payload_too_large', 'The request headers are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'validation_failed', 'The request did not arrive in time.'],
}

/** How long the answer to a broken request has to arrive. */
const LINGER_MS = 500

/** Answers what Node could not parse as a request, and closes the connection. */
export function answerBrokenRequest(
  platform: Platform,
  error: Error & { code?: string },
  socket: Socket,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [status, code, detail] = BROKEN_REQUESTS[error.code ?? ''] ?? NOT_HTTP
  const requestId = platform.ids.next()
  const { body } = problemOf(new Refusal(code, detail), requestId, platform.database)
  const title = STATUS_CODES[status] ?? body.title
  const text = JSON.stringify({ ...body, status, title })
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    'Connection: close',
    'Cache-Control: no-store',
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(text)}`,
    'X-Content-Type-Options: nosniff',
    `X-Request-Id: ${requestId}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`)
  // A client that never closes its side must not keep the connection. At once, unread bytes would reset it before the answer arrives.
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
  platform.log.info({ requestId, status, reason: error.code }, 'broken request')
}

/**
 * Gives each address a share of the connections: one more is closed. Without a limit (`null`, behind proxies, whose address all clients
 * have) there is no share. When the server closes, connections without any request are closed: browsers open some in advance, and Node
 * does not count them as idle, so `close()` would wait for them. Connections that are being answered end after their answer: Node would
 * keep them open for the keep-alive timeout.
 */
export function keepConnections(server: FastifyInstance, mostOfAddress: number | null): void {
  const open = new Set<Socket>()
  const ofAddress = new Map<string, number>()
  let closing = false
  server.server.on('connection', (socket: Socket) => {
    const address = addressKey(socket.remoteAddress ?? '')
    const count = (ofAddress.get(address) ?? 0) + 1
    if (closing || (mostOfAddress !== null && count > mostOfAddress)) {
      socket.destroy()
      return
    }
    open.add(socket)
    ofAddress.set(address, count)
    socket.once('close', () => {
      open.delete(socket)
      const left = (ofAddress.get(address) ?? 1) - 1
      if (left === 0) ofAddress.delete(address)
      else ofAddress.set(address, left)
    })
  })
  server.addHook('preClose', async () => {
    closing = true
    Object.assign(server.server, { keepAliveTimeout: 1, keepAliveTimeoutBuffer: 0 })
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
  })
}
