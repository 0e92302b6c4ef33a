import { Counter, type Registry } from 'prom-client'
import { EVENT_SOURCES, settledSignal } from '../../inbox/inbox.service.ts'
import { saleSignal } from '../../jobs/apply-store-events.ts'
import type { HttpApp } from '../context.ts'

const OUTCOMES = ['done', 'ignored', 'set_aside', 'retry'] as const
const SALE_STATUSES = ['accepted', 'rejected'] as const

/** Registers the counters of this process. `counted` is the app with a counting inbox; `stop` ends the counting of the worker. */
export function registerCounters(registry: Registry, app: HttpApp): { counted: HttpApp; stop: () => void } {
  countClicks(registry, app)
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
  for (const source of EVENT_SOURCES) {
    for (const outcome of OUTCOMES) {
      const series = applied.labels({ source, outcome })
      series.inc(0)
      stops.push(platform.topics.on(settledSignal(source, outcome), () => series.inc()))
    }
  }
  for (const status of SALE_STATUSES) {
    const series = sales.labels({ acceptance_status: status })
    series.inc(0)
    stops.push(platform.topics.on(saleSignal(status), () => series.inc()))
  }
  return () => {
    for (const stop of stops) stop()
  }
}
