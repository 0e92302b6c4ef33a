import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { ErrorCode } from '../../shared/error-codes.ts'
import { problemOf } from '../platform/api/problem.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'
import { PROBLEM_TYPE } from './errors.ts'

type BrokenRequest = [status: number, code: ErrorCode, detail: string]

const NOT_HTTP: BrokenRequest = [400, 'validation_failed', 'The request is not valid HTTP.']
/** No error code fits these statuses; the closest one is sent. */
const BROKEN_REQUESTS: Record<string, BrokenRequest> = {
  HPE_HEADER_OVERFLOW: [431, 'payload_too_large', 'The request headers are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'validation_failed', 'The request did not arrive in time.'],
}

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
  platform.log.info({ requestId, status, reason: error.code }, 'broken request')
}

/**
 * Closes connections without any request when the server closes. Browsers open some in advance; Node does not count them as
 * idle, so `close()` would wait for them.
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
