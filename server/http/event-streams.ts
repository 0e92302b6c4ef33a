import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Platform } from '../platform/platform.ts'
import { liveStreams } from '../summaries/live-streams.ts'

/** How often is looked for readers that have stopped reading. */
const SWEEP_MS = 30_000
/** How long the end of the server waits for what the streams still have under way. */
const PATIENCE_MS = 2000

/**
 * Keeps track of the event streams of a server, which would otherwise hold up its end for ever: when it closes they are cut
 * off, and their clients come back by themselves, to whoever answers then. A stream whose reader takes nothing for a whole
 * round of the sweep is cut off as well. Answers how a stream is given into its care; the signal that this answers is
 * aborted when the response's connection has gone: the signal of the web `Request` that tRPC hands on was once seen not to
 * tell.
 */
export function careForEventStreams(
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
    for (const response of open) response.destroy()
    await Promise.race([liveStreams(platform).idle(), patience()])
  })
  return (response) => {
    const gone = new AbortController()
    open.add(response)
    response.once('close', () => {
      open.delete(response)
      gone.abort()
    })
    // A client that comes back while the server still listens.
    if (closing) response.destroy()
    return gone.signal
  }
}

function patience(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref())
}
