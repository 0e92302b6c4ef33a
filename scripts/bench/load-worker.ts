import autocannon from 'autocannon'
import { type BenchRequest, CONNECTIONS, type LoadAnswer, type LoadOrder } from './load-order.ts'
import { runOpenLoop } from './open-loop.ts'

let sent = 0

function run(order: LoadOrder): Promise<LoadAnswer> {
  const { url, seconds, rate, requests } = order
  if (rate === null) return saturate(order)
  return runOpenLoop({ url, seconds, rate, requestAt: () => next(requests, order.uniqueHeader) })
}

function next<Request extends BenchRequest | autocannon.Request>(
  requests: readonly Request[],
  uniqueHeader: string | null,
): Request {
  const request = requests[sent % requests.length] as Request
  sent += 1
  // autocannon fails on a request without headers.
  if (uniqueHeader === null) return { ...request, headers: { ...request.headers } }
  return { ...request, headers: { ...request.headers, [uniqueHeader]: `bench-${process.pid}-${sent}` } }
}

async function saturate({
  url,
  seconds,
  uniqueHeader,
  sequential,
  ...order
}: LoadOrder): Promise<LoadAnswer> {
  const requests = order.requests.map(withBytes)
  const statuses: Record<string, number> = {}
  const prepared =
    uniqueHeader === null && !sequential ? requests : [{ setupRequest: () => next(requests, uniqueHeader) }]
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

/** With the body as bytes: encoding its text for each request would keep the generator busy. */
function withBytes({ body, ...request }: BenchRequest): autocannon.Request {
  return body === undefined ? request : { ...request, body: Buffer.from(body) }
}

process.on('message', (order: LoadOrder) => {
  run(order)
    .catch((error: unknown) => ({ error: String(error) }))
    .then((answer) => process.send?.(answer))
})
