import { randomInt } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Platform } from '../platform/platform.ts'
import { liveStreams } from '../reports/live-streams.ts'

/** How often stalled readers are looked for. */
const SWEEP_MS = 30_000
/** How long a closing server waits for the work of its streams. */
const CLOSE_TIMEOUT_MS = 2000
/** Clients reconnect within these times after the server has closed, not all at once. */
const RECONNECT_MS = [500, 3000] as const

/**
 * Tracks a server's event streams. Closing the server ends them with a hint when to reconnect, which clients do by themselves. A reader
 * that takes nothing for a whole sweep is destroyed. The returned function adds a stream; its signal aborts when the response's connection
 * closes. tRPC's own request signal does not always abort then.
 */
export function trackEventStreams(
  server: FastifyInstance,
  platform: Platform,
): (response: ServerResponse) => AbortSignal {
  const open = new Set<ServerResponse>()
  let stuck = new Set<ServerResponse>()
  let closing = false
  const sweep = setInterval(() => {
    const waiting = [...open].filter((response) => response.writableNeedDrain)
    for (const response of waiting) if (stuck.has(response)) response.destroy()
    stuck = new Set(waiting)
  }, SWEEP_MS)
  sweep.unref()
  server.addHook('preClose', async () => {
    clearInterval(sweep)
    closing = true
    for (const response of open) endStream(response)
    const timeout = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref())
    await Promise.race([liveStreams(platform).idle(), timeout])
  })
  return (response) => {
    const gone = new AbortController()
    open.add(response)
    response.once('close', () => {
      open.delete(response)
      gone.abort()
    })
    // A client may reconnect before the server has stopped listening.
    if (closing) response.destroy()
    return gone.signal
  }
}

/** An unfinished response rather than an end, which clients would take for the end of the subscription. */
function endStream(response: ServerResponse): void {
  const retry = randomInt(...RECONNECT_MS)
  if (response.writableNeedDrain || !response.headersSent) response.destroy()
  else response.write(`retry: ${retry}\n\n`, () => response.destroy())
}
