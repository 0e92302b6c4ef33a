import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from '../testkit/eventually.ts'
import { orderBody, orderHeaders, type StoreAccess } from '../testkit/orders.ts'
import type { Answer, Front, OutgoingRequest } from './front.ts'

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0'
const TICK_MS = 20
/** How soon a store sends again what was not acknowledged. */
const SEND_AGAIN_MS = 1000

export interface Shop extends StoreAccess {
  slug: string
  /** Of its merchant. */
  token: string
}

export type Kind = 'webhook' | 'click' | 'list' | 'account'

export interface Sample {
  kind: Kind
  /** The delivery id or the tracking reference; empty for reads. */
  id: string
  /** `performance.now()` at its start. */
  at: number
  ms: number
  status: number
  retryAfter: number
  problem: string
}

/** Requests at a fixed rate, which does not wait for answers unless `mostUnderWay` says so: webhooks, clicks, public and authenticated reads. */
export class Load {
  readonly samples: Sample[] = []
  /** Orders by delivery id, of every webhook that was answered 200. */
  readonly acknowledged = new Map<string, string>()
  readonly clicks = new Set<string>()
  /** Webhooks that were sent and not acknowledged so far. */
  open = 0
  readonly #shop: Shop
  readonly #rate: number
  readonly #random: () => number
  readonly #underWay = new Set<Promise<void>>()
  readonly #unusedClicks: string[] = []
  #timer: NodeJS.Timeout | null = null
  #due = 0
  #count = 0
  front: Front
  /** Sends no more while so many wait for their answers. */
  mostUnderWay = Number.POSITIVE_INFINITY

  constructor(shop: Shop, front: Front, { rate, random }: { rate: number; random: () => number }) {
    this.#shop = shop
    this.front = front
    this.#rate = rate
    this.#random = random
  }

  start(): void {
    let before = performance.now()
    this.#timer = setInterval(() => {
      const now = performance.now()
      this.#due += ((now - before) / 1000) * this.#rate
      before = now
      for (; this.#due >= 1; this.#due -= 1)
        if (this.#underWay.size < this.mostUnderWay) this.#track(this.#next())
    }, TICK_MS)
  }

  /** Sends no more, and waits until every webhook was acknowledged. */
  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer)
    this.#timer = null
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  /** Sends through another front. */
  async useFront(front: Front): Promise<void> {
    const former = this.front
    this.front = front
    await former.close()
  }

  #track(work: Promise<void>): void {
    this.#underWay.add(work)
    void work.finally(() => this.#underWay.delete(work))
  }

  async #next(): Promise<void> {
    const chosen = this.#random()
    if (chosen < 0.5) return this.#report()
    if (chosen < 0.75) return this.#follow()
    if (chosen < 0.9) return this.#read('list', '/offers', {})
    return this.#read('account', '/summary', { authorization: `Bearer ${this.#shop.token}` })
  }

  /** A store sends again, with the same delivery id, until it is answered 200. */
  async #report(): Promise<void> {
    this.#count += 1
    const id = `failover-${this.#count}`
    const orderId = String(9_000_000_000_000 + this.#count)
    const click = this.#unusedClicks.pop()
    const price = 100_000 + Math.floor(this.#random() * 100_000)
    const body = orderBody({ id: orderId, price, createdAt: Date.now(), ...(click && { click }) })
    const headers = orderHeaders(this.#shop, id, body)
    const request: OutgoingRequest = { method: 'POST', path: '/webhooks/store-sales', headers, body }
    this.open += 1
    while ((await this.#send('webhook', request, () => id)).status !== 200) await pause(SEND_AGAIN_MS)
    this.open -= 1
    this.acknowledged.set(id, orderId)
  }

  async #follow(): Promise<void> {
    const headers = { 'user-agent': BROWSER }
    const request = { method: 'GET', path: `/go/${this.#shop.slug}`, headers } as const
    const reference = (answer: Answer) => /aff_ref=([0-9a-f-]{36})/.exec(answer.location)?.[1] ?? ''
    const answer = await this.#send('click', request, reference)
    if (answer.status !== 302) return
    const id = reference(answer)
    // The database did not take the click: the visitor still reaches the shop.
    if (id === '') return
    this.clicks.add(id)
    this.#unusedClicks.push(id)
  }

  async #read(kind: Kind, path: string, headers: Record<string, string>): Promise<void> {
    await this.#send(kind, { method: 'GET', path, headers }, () => '')
  }

  async #send(kind: Kind, request: OutgoingRequest, idOf: (answer: Answer) => string): Promise<Answer> {
    const at = performance.now()
    const answer = await this.front.send(request)
    const { status, retryAfter, problem } = answer
    this.samples.push({ kind, id: idOf(answer), at, ms: performance.now() - at, status, retryAfter, problem })
    return answer
  }
}

const GOOD: Record<Kind, number> = { webhook: 200, click: 302, list: 200, account: 200 }

/** Waits for a second in which every request is taken; returns what was asked in it and answered by its end. */
export function calmSecond(load: Load): Promise<Sample[]> {
  const second = async () => {
    const from = performance.now()
    await pause(1000)
    return load.samples.filter(({ at }) => at >= from)
  }
  return eventually(second, (last) => last.length > 0 && load.open < 50 && last.every(isTaken))
}

export function isTaken({ kind, status }: Sample): boolean {
  return status === GOOD[kind]
}
