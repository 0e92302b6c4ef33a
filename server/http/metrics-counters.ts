import { Counter, type Registry } from 'prom-client'
import { EVENT_SOURCES, settledSignal } from '../inbox/inbox.service.ts'
import { saleSignal } from '../jobs/apply-store-events.ts'
import type { HttpApp } from './http-app.ts'

const OUTCOMES = ['done', 'ignored', 'set_aside', 'retry'] as const
const SALE_STATUSES = ['accepted', 'rejected'] as const

/**
 * Counts what this process does. `counted` is the app with its inbox watched; `stop` ends the listening to what the
 * worker says.
 */
export function countWork(registry: Registry, app: HttpApp): { counted: HttpApp; stop: () => void } {
  countClicks(registry, app)
  const received = new Counter({
    name: 'affiliate_events_received_total',
    help: 'Signed events taken in: stored, known (a redelivery), or conflict (the same delivery id, another body).',
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
  return { counted, stop: listenToWorker(registry, app) }
}

/** Counted where they are written, and asked for only when somebody reads: at each click the library would look for the series anew. */
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

/** Every series is there from the start, at zero: a rate over one that appears with its first event misses that event. */
function listenToWorker(registry: Registry, { platform }: HttpApp): () => void {
  const applied = new Counter({
    name: 'affiliate_events_applied_total',
    help: 'Events that the worker of this process has dealt with, by outcome.',
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
      stops.push(platform.signals.on(settledSignal(source, outcome), () => series.inc()))
    }
  }
  for (const status of SALE_STATUSES) {
    const series = sales.labels({ acceptance_status: status })
    series.inc(0)
    stops.push(platform.signals.on(saleSignal(status), () => series.inc()))
  }
  return () => {
    for (const stop of stops) stop()
  }
}
