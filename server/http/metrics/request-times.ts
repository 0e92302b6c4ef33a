import type { FastifyReply, FastifyRequest } from 'fastify'
import { Histogram, type Registry } from 'prom-client'
import { routeOf } from '../errors.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS']

/**
 * The request duration histogram; call the returned function for each response. Labels have few values: routes are patterns,
 * rare methods are `other`. Event streams are not timed: their duration says nothing about latency.
 */
export function requestTimes(registry: Registry): (request: FastifyRequest, reply: FastifyReply) => void {
  const durations = new Histogram({
    name: 'affiliate_http_request_duration_seconds',
    help: 'Time from receiving a request to the end of its response.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  })
  return (request, reply) => {
    if (String(reply.getHeader('content-type')).startsWith('text/event-stream')) return
    const method = METHODS.includes(request.method) ? request.method : 'other'
    const labels = { method, route: routeOf(request), status: reply.statusCode }
    durations.observe(labels, reply.elapsedTime / 1000)
  }
}
