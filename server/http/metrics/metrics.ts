import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import { EVENT_SOURCES, settledSignal } from '../../inbox/inbox.service.ts'
import { saleSignal } from '../../jobs/apply-store-events.ts'
import { Refusal } from '../../platform/api/refusal.ts'
import { isSameText } from '../../platform/crypto/vault.ts'
import { isLoopbackAddress, isLoopbackHost } from '../../platform/network/loopback.ts'
import type { Platform } from '../../platform/platform.ts'
import type { HttpApp } from '../context.ts'
import { routeOf } from '../errors.ts'
import { registerGauges } from './gauges.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** The Prometheus metrics of this process. The edge must use `counted`, the app whose events are counted. */
export function createMetrics(app: HttpApp) {
  const registry = new Registry()
  const recordTime = requestTimes(registry)
  registerGauges(registry, app)
  return { ...registerCounters(registry, app), recordTime, registry }
}

/** Registers `GET /metrics`. */
export function registerMetrics(server: FastifyInstance, { counted, registry, stop }: Metrics): void {
  server.addHook('onClose', async () => stop())
  const { config, log } = counted.platform
  if (config.NODE_ENV === 'production' && config.METRICS_TOKEN === undefined) {
    log.warn('/metrics is disabled; set METRICS_TOKEN to enable it in production')
  }
  server.get('/metrics', async (request, reply) => {
    checkReader(counted.platform, request)
    const all = Registry.merge([registry, processMetrics()])
    return reply.type(all.contentType).send(await all.metrics())
  })
}

let ofProcess: Registry | undefined

/** Memory, CPU, garbage collection and event loop lag; one registry for all servers of the process. */
function processMetrics(): Registry {
  if (!ofProcess) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return ofProcess
}

const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'x-forwarded-host', 'via']

/**
 * With METRICS_TOKEN, requires the token. Without it, refuses in production; elsewhere allows only this machine, by a
 * loopback name: a web page could reach the service through DNS rebinding.
 */
function checkReader({ config }: Platform, request: FastifyRequest): void {
  const token = config.METRICS_TOKEN
  if (token !== undefined) {
    const sent = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1]
    if (sent !== undefined && isSameText(sent, token)) return
    throw new Refusal('unauthenticated', 'Send METRICS_TOKEN as a bearer token.')
  }
  if (config.NODE_ENV === 'production') {
    throw new Refusal('forbidden', 'Metrics are disabled. Set METRICS_TOKEN and send it as a bearer token.')
  }
  const forwarded = FORWARDING_HEADERS.some((name) => request.headers[name] !== undefined)
  const local = isLoopbackAddress(request.socket.remoteAddress) && isLoopbackAddress(request.ip)
  if (forwarded || !local) {
    throw new Refusal('forbidden', 'Without METRICS_TOKEN, metrics are available on this machine only.')
  }
  if (isLoopbackName(request.headers.host)) return
  throw new Refusal('forbidden', 'Request metrics at localhost or 127.0.0.1, or set METRICS_TOKEN.')
}

function isLoopbackName(header: string | undefined): boolean {
  const url = header === undefined ? null : URL.parse(`http://${header}`)
  return url !== null && isLoopbackHost(url.hostname)
}

const METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS']

/**
 * The request duration histogram; call the returned function for each response. Labels have few values: routes are patterns,
 * rare methods are `other`. Event streams are not timed: their duration says nothing about latency.
 */
function requestTimes(registry: Registry): (request: FastifyRequest, reply: FastifyReply) => void {
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

const OUTCOMES = ['done', 'ignored', 'set_aside', 'retry'] as const
const SALE_STATUSES = ['accepted', 'rejected'] as const

/** Registers the counters of this process. `counted` is the app with a counting inbox; `stop` ends the counting of the worker. */
function registerCounters(registry: Registry, app: HttpApp) {
  countClicks(registry, app)
  countLostClicks(registry, app)
  const received = new Counter({
    name: 'affiliate_events_received_total',
    help: 'Signed events received: stored, known (a redelivery), or conflict (a known delivery id with another body).',
    labelNames: ['source', 'receipt'],
    registers: [registry],
  })
  const counted: HttpApp = {
    ...app,
    inbox: {
      ...app.inbox,
      async record(event) {
        const receipt = await app.inbox.record(event)
        received.inc({ source: event.source, receipt })
        return receipt
      },
    },
  }
  return { counted, stop: countWorker(registry, app) }
}

/** Read from the click recorder at each scrape: an `inc` for each click is slower than the click. */
function countClicks(registry: Registry, { clicks }: HttpApp): void {
  new Counter({
    name: 'affiliate_clicks_total',
    help: 'Clicks written to disk.',
    labelNames: ['kind', 'tracked'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { kind, tracked, count } of clicks.written()) {
        this.inc({ kind, tracked: String(tracked) }, count)
      }
    },
  })
}

/** Also read at each scrape. */
function countLostClicks(registry: Registry, { clicks }: HttpApp): void {
  new Counter({
    name: 'affiliate_clicks_lost_total',
    help: 'Visitors redirected without a click, because the database did not take it.',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(clicks.lost())
    },
  })
}

/** Each series starts at zero: `rate()` misses the first event of a series that appears with it. */
function countWorker(registry: Registry, { platform }: HttpApp): () => void {
  const applied = new Counter({
    name: 'affiliate_events_applied_total',
    help: 'Events that the worker of this process has applied, by outcome.',
    labelNames: ['source', 'outcome'],
    registers: [registry],
  })
  const sales = new Counter({
    name: 'affiliate_sales_total',
    help: 'Sales that the worker of this process has recorded.',
    labelNames: ['acceptance_status'],
    registers: [registry],
  })
  const stops: (() => void)[] = []
  const count = (signal: string, series: Counter.Internal) => {
    series.inc(0)
    stops.push(platform.topics.on(signal, () => series.inc()))
  }
  for (const source of EVENT_SOURCES)
    for (const outcome of OUTCOMES) count(settledSignal(source, outcome), applied.labels({ source, outcome }))
  for (const status of SALE_STATUSES) count(saleSignal(status), sales.labels({ acceptance_status: status }))
  return () => {
    for (const stop of stops) stop()
  }
}
