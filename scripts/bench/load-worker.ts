import autocannon from 'autocannon'
import { type BenchRequest, CONNECTIONS, type LoadAnswer, type LoadOrder } from './load-order.ts'

let sent = 0

async function run({ url, seconds, uniqueHeader, inTurn, ...order }: LoadOrder): Promise<LoadAnswer> {
  const requests = order.requests.map(withBytes)
  const statuses: Record<string, number> = {}
  const prepared = uniqueHeader === null && !inTurn ? requests : [{ setupRequest: next }]
  function next(): autocannon.Request {
    const request = requests[sent % requests.length] as autocannon.Request
    sent += 1
    const header = uniqueHeader !== null && { [uniqueHeader]: `bench-${process.pid}-${sent}` }
    return { ...request, headers: { ...request.headers, ...header } }
  }
  const begun = performance.now()
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const options = { url, connections: CONNECTIONS, duration: seconds, requests: prepared }
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

/**
 * The body as what is sent: made of its text at each request, it would be half of what the generator's collector has to see to,
 * and in the collector's pauses all answers wait.
 */
function withBytes({ body, ...request }: BenchRequest): autocannon.Request {
  return body === undefined ? request : { ...request, body: Buffer.from(body) }
}

process.on('message', (order: LoadOrder) => {
  run(order)
    .catch((error: unknown): LoadAnswer => ({ error: String(error) }))
    .then((answer) => process.send?.(answer))
})
