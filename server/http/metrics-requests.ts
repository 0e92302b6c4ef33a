import type { onResponseHookHandler } from 'fastify'
import { Histogram, type HistogramConfiguration, type Registry } from 'prom-client'
import { routeOf } from './errors.ts'

const NAME = 'affiliate_http_request_duration_seconds'
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS']

/** Takes the time of one answered request, in ms. */
export type TimeRequest = (method: string, status: number, ms: number) => void

export interface RequestTimes {
  /** To be hooked on the answers of every route that is not timed by itself. */
  timed: onResponseHookHandler
  /** For one route, by its pattern. */
  of(route: string): TimeRequest
}

/**
 * Times every request by its route's pattern: what a caller writes into an address makes no new series. Event streams are
 * left out: how long somebody listens says nothing about how quickly he is answered.
 */
export function timeRequests(registry: Registry): RequestTimes {
  const durations = new Durations({
    name: NAME,
    help: 'Time from the head of a request to the end of its answer.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
  })
  const routes = new Map<string, TimeRequest>()
  const of = (route: string): TimeRequest => {
    const known = routes.get(route) ?? durations.ofRoute(route)
    routes.set(route, known)
    return known
  }
  return {
    of,
    timed(request, reply, done) {
      done()
      if (String(reply.getHeader('content-type')).startsWith('text/event-stream')) return
      of(routeOf(request))(request.method, reply.statusCode, reply.elapsedTime)
    },
  }
}

type Label = 'method' | 'route' | 'status' | 'le'

interface Series {
  labels: { method: string; route: string; status: number }
  /** By bound; the last is of what is beyond them all. */
  counts: number[]
  /** Seconds. */
  sum: number
}

/**
 * A histogram that counts by itself, and is written out by the library: that one looks for the series by all its labels at each
 * observation, which costs several times as much as the counting.
 */
class Durations extends Histogram<Label> {
  readonly #series: Series[] = []
  /** What surrounds the figures. */
  readonly #empty: Histogram

  constructor(configuration: HistogramConfiguration<Label>) {
    super(configuration)
    this.#empty = new Histogram({ name: configuration.name, help: configuration.help, registers: [] })
  }

  ofRoute(route: string): TimeRequest {
    const known = new Map<number, Series>()
    return (method, status, ms) => {
      const place = METHODS.indexOf(method)
      const key = place * 1000 + status
      const series = known.get(key) ?? this.#begin({ method: METHODS[place] ?? 'other', route, status })
      known.set(key, series)
      count(series, ms / 1000)
    }
  }

  #begin(labels: Series['labels']): Series {
    const series = { labels, counts: [0, ...BUCKETS.map(() => 0)], sum: 0 }
    this.#series.push(series)
    return series
  }

  override async get() {
    const values = this.#series.flatMap((series) => valuesOf(series))
    return { ...(await this.#empty.get()), values }
  }

  /** What the registry asks for, where there is one. */
  getForPromString() {
    return this.get()
  }
}

function count(series: Series, seconds: number): void {
  let bound = 0
  while (bound < BUCKETS.length && seconds > (BUCKETS[bound] ?? 0)) bound += 1
  series.counts[bound] = (series.counts[bound] ?? 0) + 1
  series.sum += seconds
}

function valuesOf({ labels, counts, sum }: Series) {
  let total = 0
  const buckets = counts.map((here, bound) => {
    total += here
    return { labels: { le: BUCKETS[bound] ?? '+Inf', ...labels }, value: total, metricName: `${NAME}_bucket` }
  })
  return [
    ...buckets,
    { labels, value: sum, metricName: `${NAME}_sum` },
    { labels, value: total, metricName: `${NAME}_count` },
  ]
}
