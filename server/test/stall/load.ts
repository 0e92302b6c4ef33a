import { createHmac } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'undici'
import { orderBody } from '../testkit/orders.ts'

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0'

export interface Shop {
  slug: string
  domain: string
  secret: string
}

export interface Sample {
  kind: 'click' | 'event'
  /** The tracking reference or the delivery id; empty when there is none. */
  id: string
  /** `performance.now()` at its start. */
  at: number
  ms: number
  /** 0 when the connection broke. */
  status: number
  retryAfter: number
}

export interface Load {
  readonly samples: readonly Sample[]
  stop(): Promise<void>
}

/** Visitors and a store's webhooks in turn, on so many connections, each waiting `paceMs` after an answer. */
export function startLoad(url: string, shop: Shop, connections: number, paceMs: number): Load {
  const samples: Sample[] = []
  let running = true
  const lanes = Array.from({ length: connections }, async (_, lane) => {
    const client = new Client(url)
    for (let turn = 0; running; turn += 1) {
      samples.push(
        await (turn % 2 === 0 ? follow(client, shop) : report(client, shop, `load-${lane}-${turn}`)),
      )
      await pause(paceMs)
    }
    await client.close()
  })
  return {
    samples,
    async stop() {
      running = false
      await Promise.all(lanes)
    },
  }
}

type Answer = Pick<Sample, 'status' | 'retryAfter'> & { location: string }

async function follow(client: Client, shop: Shop): Promise<Sample> {
  const at = performance.now()
  const { location, ...answer } = await ask(client, 'GET', `/go/${shop.slug}`, { 'user-agent': BROWSER })
  const id = /aff_ref=([0-9a-f-]{36})/.exec(location)?.[1] ?? ''
  return { kind: 'click', id, at, ms: performance.now() - at, ...answer }
}

async function report(client: Client, shop: Shop, id: string): Promise<Sample> {
  const body = orderBody({ price: 100_000, createdAt: Date.now() })
  const headers = {
    'content-type': 'application/json',
    'x-shopify-topic': 'orders/paid',
    'x-shopify-shop-domain': shop.domain,
    'x-shopify-webhook-id': id,
    'x-shopify-hmac-sha256': createHmac('sha256', shop.secret).update(body).digest('base64'),
  }
  const at = performance.now()
  const { location: _none, ...answer } = await ask(client, 'POST', '/webhooks/store-sales', headers, body)
  return { kind: 'event', id, at, ms: performance.now() - at, ...answer }
}

async function ask(
  client: Client,
  method: 'GET' | 'POST',
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<Answer> {
  try {
    const answer = await client.request({ method, path, headers, body: body ?? null })
    await answer.body.dump()
    const header = (name: string) => String(answer.headers[name] ?? '')
    return {
      status: answer.statusCode,
      retryAfter: Number(header('retry-after')),
      location: header('location'),
    }
  } catch {
    return { status: 0, retryAfter: 0, location: '' }
  }
}

export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}
