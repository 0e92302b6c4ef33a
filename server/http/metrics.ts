import { createHash, timingSafeEqual } from 'node:crypto'
import { BlockList } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Registry } from 'prom-client'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import type { HttpApp } from './http-app.ts'
import { countWork } from './metrics-counters.ts'
import { measureState, processMetrics } from './metrics-gauges.ts'
import { type RequestTimes, timeRequests } from './metrics-requests.ts'

/** What this process counts, for Prometheus. */
export interface Metrics {
  /** The app whose events are counted: the edge is to be given this one. */
  counted: HttpApp
  times: RequestTimes
  registry: Registry
  stop(): void
}

/** Counters are this process' own; what stands in the database is the same in all of them. */
export function createMetrics(app: HttpApp): Metrics {
  const registry = new Registry()
  const times = timeRequests(registry)
  measureState(registry, app)
  return { ...countWork(registry, app), times, registry }
}

/** `GET /metrics`, and the timing of all routes that follow. */
export function registerMetrics(server: FastifyInstance, { counted, times, registry, stop }: Metrics): void {
  server.addHook('onResponse', times.timed)
  server.addHook('onClose', async () => stop())
  server.get('/metrics', async (request, reply) => {
    checkReader(counted.platform, request)
    const all = Registry.merge([registry, processMetrics()])
    return reply.type(all.contentType).send(await all.metrics())
  })
}

/**
 * With METRICS_TOKEN set whoever shows it may read, and nobody else: behind a proxy on the same machine everybody comes
 * from loopback. Without one only this machine may, and no request that says it was passed on.
 */
function checkReader({ config }: Platform, request: FastifyRequest): void {
  const token = config.METRICS_TOKEN
  if (token !== undefined) {
    const shown = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1]
    if (shown !== undefined && sameText(shown, token)) return
    throw new Refusal('unauthenticated', 'This needs the METRICS_TOKEN as a bearer token.')
  }
  const passedOn = FORWARDING_HEADERS.some((name) => request.headers[name] !== undefined)
  if (!passedOn && isLoopback(request.socket.remoteAddress) && isLoopback(request.ip)) return
  throw new Refusal('forbidden', 'Figures are given to this machine only, unless METRICS_TOKEN is set.')
}

const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'x-forwarded-host', 'via']

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** IPv4 written as IPv6 (`::ffff:127.0.0.1`) counts as what it is. */
function isLoopback(address = ''): boolean {
  return loopback.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
}

function sameText(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(a), hash(b))
}
