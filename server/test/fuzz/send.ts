import { connect } from 'node:net'
import { Pool } from 'undici'
import { firstWordOf } from '../authorization/event-stream.ts'
import type { FuzzRequest } from './requests.ts'

export const CONCURRENCY = 16
/** No answer takes a thousand times the usual 20 ms. */
export const TIMEOUT_MS = 20_000
/** When nothing more is waited for; between the two lies what came too late. */
const GIVE_UP_MS = 60_000

export interface FuzzAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  /** Milliseconds to the end of the answer. */
  took: number
}

export function openPool(url: string): Pool {
  return new Pool(url, {
    connections: CONCURRENCY,
    pipelining: 1,
    headersTimeout: GIVE_UP_MS,
    bodyTimeout: GIVE_UP_MS,
  })
}

/** Over a kept-alive connection. Of a stream of events only the first word is read. */
export async function sendRequest(pool: Pool, request: FuzzRequest): Promise<FuzzAnswer> {
  const started = performance.now()
  const { statusCode, headers, body } = await pool.request({
    method: request.method as 'GET',
    path: request.path,
    headers: request.headers,
    body: request.body,
  })
  const stream = String(headers['content-type'] ?? '').startsWith('text/event-stream')
  const said = stream ? await firstWordOf(body) : { status: statusCode, text: await body.text() }
  return { ...said, headers, took: performance.now() - started }
}

export interface RawAnswer {
  /** Whatever came back until the server closed the connection. */
  text: string
  took: number
  /** The server had not closed the connection when nothing more was waited for. */
  hung: boolean
}

/** Writes these bytes, says that no more will come, and waits for the server to close the connection. */
export function sendRaw(url: string, bytes: Buffer): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  const started = performance.now()
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const end = (hung: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text: Buffer.concat(chunks).toString('latin1'), took: performance.now() - started, hung })
    }
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.end(bytes))
    const timer = setTimeout(end, GIVE_UP_MS, true)
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.once('close', () => end(false))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // The server may close while we still write; a refused connection means that it is gone.
      if (error.code !== 'ECONNREFUSED') return
      clearTimeout(timer)
      reject(error)
    })
  })
}
