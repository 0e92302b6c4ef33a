import { createTRPCClient, httpSubscriptionLink } from '@trpc/client'
import { EventSource } from 'eventsource'
import type { LiveEvent } from '../../../shared/schemas/summaries.ts'
import type { AppRouter } from '../../http/router.ts'
import { Caches } from '../../platform/cache/caches.ts'
import type { Platform } from '../../platform/platform.ts'
import { Topics } from '../../platform/topics.ts'
import { eventually } from './eventually.ts'
import { serverOver } from './web.ts'

export type WebSide = Awaited<ReturnType<typeof openWebSide>>

/** The platform as another process has it: the same database, and no signal from here. */
export function elsewhere(platform: Platform): Platform {
  return { ...platform, topics: new Topics(), caches: new Caches() }
}

export async function openWebSide(platform: Platform) {
  const server = await serverOver(platform)
  const base = await server.listen({ host: '127.0.0.1', port: 0 })
  return { base, close: () => server.close() }
}

export type Follower = ReturnType<typeof follow>

/** A real client's subscription, and what it receives. */
export function follow(base: string, token: string | null, lastEventId?: string) {
  const events: { id: string; data: LiveEvent }[] = []
  let refused: string | null = null
  let connected = 0
  const client = createTRPCClient<AppRouter>({
    links: [
      httpSubscriptionLink({
        url: `${base}/trpc`,
        EventSource,
        eventSourceOptions: {
          fetch: (url, init) =>
            fetch(url, {
              ...init,
              headers: { ...init.headers, ...(token !== null && { authorization: `Bearer ${token}` }) },
            }),
        },
      }),
    ],
  })
  const subscription = client.live.changes.subscribe(lastEventId === undefined ? {} : { lastEventId }, {
    onStarted() {
      connected += 1
    },
    onData(event) {
      events.push(event)
    },
    onError(error) {
      refused = error.data?.problem.code ?? error.message
    },
  })
  return {
    events,
    /** In short: `sale accepted`, `payout paid`, `billing_cycle closed`; without `start`. */
    received: () => events.flatMap(({ data }) => (data.kind === 'start' ? [] : [inShort(data)])),
    /** The code of the refusal that ended it; `null` while it lives. */
    refusal: () => refused,
    connections: () => connected,
    lastId: () => events.at(-1)?.id ?? '',
    until: (done: () => boolean) => eventually(done),
    stop: () => subscription.unsubscribe(),
  }
}

function inShort(event: Exclude<LiveEvent, { kind: 'start' }>): string {
  return event.kind === 'sale' ? `sale ${event.sale.acceptance_status}` : `${event.kind} ${event.change}`
}
