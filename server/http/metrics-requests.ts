import type { onResponseHookHandler } from 'fastify'
import { Histogram, type Registry } from 'prom-client'
import { routeOf } from './errors.ts'

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS']

/**
 * Times every request by its route's pattern: what a caller writes into an address makes no new series. Event streams are
 * left out: how long somebody listens says nothing about how quickly he is answered.
 */
export function timeRequests(registry: Registry): onResponseHookHandler {
  const durations = new Histogram({
    name: 'affiliate_http_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer.',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS,
    registers: [registry],
  })
  // Found by its labels once: on the hottest paths that look-up costs more than the counting.
  const known = new Map<string, Histogram.Internal<'method' | 'route' | 'status'>>()
  const seriesOf = (method: string, route: string, status: number) => {
    const key = `${method} ${status} ${route}`
    const series = known.get(key) ?? durations.labels({ method, route, status })
    known.set(key, series)
    return series
  }
  return (request, reply, done) => {
    done()
    if (String(reply.getHeader('content-type')).startsWith('text/event-stream')) return
    const method = METHODS.includes(request.method) ? request.method : 'other'
    seriesOf(method, routeOf(request), reply.statusCode).observe(reply.elapsedTime / 1000)
  }
}
