import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Registry } from 'prom-client'
import { isLoopbackAddress, isLoopbackHost } from '../platform/loopback.ts'
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
  const { config, log } = counted.platform
  if (config.NODE_ENV === 'production' && config.METRICS_TOKEN === undefined) {
    log.warn('/metrics is disabled: set METRICS_TOKEN to read it in production')
  }
  server.get('/metrics', async (request, reply) => {
    checkReader(counted.platform, request)
    const all = Registry.merge([registry, processMetrics()])
    return reply.type(all.contentType).send(await all.metrics())
  })
}

/**
 * With METRICS_TOKEN: any caller who sends it. Without it: nothing in production, otherwise this machine under
 * one of its own names. A browser can be led here by a foreign name that resolves to loopback (DNS rebinding).
 */
function checkReader({ config }: Platform, request: FastifyRequest): void {
  const token = config.METRICS_TOKEN
  if (token !== undefined) {
    const shown = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1]
    if (shown !== undefined && sameText(shown, token)) return
    throw new Refusal('unauthenticated', 'Send the METRICS_TOKEN as a bearer token.')
  }
  if (config.NODE_ENV === 'production') {
    throw new Refusal('forbidden', 'Metrics are disabled: set METRICS_TOKEN and send it as a bearer token.')
  }
  const forwarded = FORWARDING_HEADERS.some((name) => request.headers[name] !== undefined)
  const local = isLoopbackAddress(request.socket.remoteAddress) && isLoopbackAddress(request.ip)
  if (forwarded || !local) {
    throw new Refusal('forbidden', 'Metrics are for this machine only, unless METRICS_TOKEN is set.')
  }
  if (isOwnHost(request.headers.host)) return
  throw new Refusal('forbidden', 'Ask for metrics at localhost or 127.0.0.1, or set METRICS_TOKEN.')
}

const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'x-forwarded-host', 'via']

function isOwnHost(header: string | undefined): boolean {
  const url = header === undefined ? null : URL.parse(`http://${header}`)
  return url !== null && isLoopbackHost(url.hostname)
}

function sameText(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(a), hash(b))
}
