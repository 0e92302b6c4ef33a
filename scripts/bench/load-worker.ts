import type { EventEmitter } from 'node:events'
import autocannon from 'autocannon'
import { type BenchRequest, CONNECTIONS, type LoadAnswer, type LoadOrder } from './load-order.ts'

let sent = 0

async function run(order: LoadOrder): Promise<LoadAnswer> {
  const statuses: Record<string, number> = {}
  const begun = performance.now()
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const { url, seconds: duration } = order
    const options = { url, connections: CONNECTIONS, duration, ...requestsOf(order) }
    const instance = autocannon(options, (error, found) => (error ? reject(error) : resolve(found)))
    instance.on('response', (_client, status) => {
      statuses[status] = (statuses[status] ?? 0) + 1
    })
  })
  const elapsed = (performance.now() - begun) / 1000
  const answered = Object.values(statuses).reduce((sum, count) => sum + count, 0)
  return {
    requests: answered,
    perSecond: answered / elapsed,
    p50: result.latency.p50,
    p99: result.latency.p99,
    most: result.latency.max,
    statuses,
    failures: result.errors + result.timeouts + result.mismatches,
  }
}

function requestsOf({
  requests,
  uniqueHeader,
  inTurn,
}: LoadOrder): Pick<autocannon.Options, 'requests' | 'setupClient'> {
  if (uniqueHeader !== null) return { setupClient: tellApart(requests, uniqueHeader) }
  if (!inTurn) return { requests: [...requests] }
  return { requests: [{ setupRequest: () => requests[sent++ % requests.length] as BenchRequest }] }
}

/** Digits of the number by which a request is told apart. */
const DIGITS = 12

/**
 * Each connection sends one of the requests again and again, in which only the number is written anew. Built anew, each would be some 17 KB
 * for the generator's collector, whose pauses are then what the slowest requests of any server have waited for.
 */
function tellApart(requests: readonly BenchRequest[], header: string): (client: autocannon.Client) => void {
  let connections = 0
  return (client) => {
    const request = requests[connections++ % requests.length] as BenchRequest
    const prefix = `bench-${process.pid}-`
    client.setRequests([
      { ...request, headers: { ...request.headers, [header]: prefix + '0'.repeat(DIGITS) } },
    ])
    const { bytes, emitter } = inside(client)
    const place = bytes.indexOf(`${header}: ${prefix}`) + `${header}: ${prefix}`.length
    emitter.on('request', () => {
      sent += 1
      bytes.write(String(sent).padStart(DIGITS, '0'), place, 'latin1')
    })
  }
}

/** What a connection sends, and who tells before it does, of which its types do not know. */
function inside(client: autocannon.Client): { bytes: Buffer; emitter: EventEmitter } {
  return {
    bytes: (client as autocannon.Client & { getRequestBuffer(): Buffer }).getRequestBuffer(),
    emitter: client,
  }
}

process.on('message', (order: LoadOrder) => {
  run(order)
    .catch((error: unknown): LoadAnswer => ({ error: String(error) }))
    .then((answer) => process.send?.(answer))
})
