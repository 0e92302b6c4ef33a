import { createClickRecorder, type NewClick } from '../../clicks/clicks.service.ts'
import { createInboxRecorder } from '../../inbox/intake.service.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import type { Platform } from '../../platform/platform.ts'
import { rupees, share } from '../oracle/exact.ts'
import { addLink, addLiveOffer, addMerchant, storeIdOf } from './listings.ts'
import { orderBody } from './orders.ts'
import { addUser } from './people.ts'
import { rowsOf } from './rows.ts'

/** A store, and two creators who send it buyers. */
interface Stall {
  merchantId: string
  storeId: string
  links: { link: LinkRecord; creatorId: string; rate: number }[]
}

interface Delivery {
  stall: Stall
  id: string
  body: string
}

/** What must have become of what was piled up, by hand and by the fractions of the model. */
interface Wanted {
  /** By delivery id; the second body under one id has a `!` behind it. */
  states: string[]
  /** Sales by the delivery that reported them, those of each store in the order in which its orders came. */
  sales: string[]
  /** `account owner` → paisa. */
  balances: Map<string, number>
}

const RATES = [1250, 1000]
const FEE_RATE = 1000
const WHOLE = 10_000
/** As much as real orders have besides, so that reading one takes some time. */
const NOTE = 'n'.repeat(6000)

/**
 * Orders of several stores that wait all at once. What becomes of some depends on which came first: the same order comes again for another
 * price, and another body under the same delivery id. Each has a price of its own, so that nothing can be taken for something else.
 */
export class PiledOrders {
  readonly #stalls: readonly Stall[]
  readonly #wanted: Wanted = { states: [], sales: [], balances: new Map() }
  #piled = 0

  static async open(platform: Platform, stores: number): Promise<PiledOrders> {
    const stalls: Stall[] = []
    for (let store = 0; store < stores; store += 1) stalls.push(await openStall(platform))
    return new PiledOrders(stalls)
  }

  private constructor(stalls: readonly Stall[]) {
    this.#stalls = stalls
  }

  /** Adds so many more, from each store in turn. Returns how many of them have something to read. */
  async pile(platform: Platform, many: number): Promise<number> {
    const clicks: NewClick[] = []
    const deliveries: Delivery[] = []
    const known = new Map<Stall, Delivery>()
    let conflicting = 0
    for (let added = 0; added < many; added += 1) {
      const number = this.#piled++
      const stall = this.#stalls[number % this.#stalls.length] as Stall
      const earlier = known.get(stall)
      // Shifted with each round, so that each store has some of every kind.
      const kind = (number + Math.floor(number / this.#stalls.length)) % 10
      if (earlier && kind === 5) conflicting += 1
      if (earlier && kind === 5) deliveries.push(this.#anotherBody(platform, earlier))
      else if (earlier && kind === 3) deliveries.push(this.#again(platform, stall, number, earlier))
      else if (kind === 7) deliveries.push(this.#malformed(stall, number))
      else {
        const sale = this.#sale(platform, clicks, stall, number)
        known.set(stall, sale)
        deliveries.push(sale)
      }
    }
    const visits = createClickRecorder(platform)
    await Promise.all(clicks.map((click) => visits.record(click)))
    const inbox = createInboxRecorder(platform)
    const came = { source: 'store', topic: 'orders/paid' } as const
    await Promise.all(
      deliveries.map(({ stall, id, body }) =>
        inbox.record({ ...came, scope: stall.storeId, deliveryId: id, rawBody: Buffer.from(body) }),
      ),
    )
    await Promise.all([inbox.idle(), visits.idle()])
    return many - conflicting
  }

  /** How many wait to be applied. */
  async waiting(platform: Platform): Promise<number> {
    return (await this.#events(platform)).filter(({ state }) => state === 'pending').length
  }

  /** What has become of all of them otherwise than it must. */
  async differences(platform: Platform): Promise<string[]> {
    const events = await this.#events(platform)
    const states = events.map(({ delivery_id, conflict_hash, state }) =>
      stateText(delivery_id, conflict_hash !== '', state),
    )
    return [
      ...differences('events', states.sort(), this.#wanted.states.toSorted()),
      ...differences('sales', await this.#sales(platform), this.#inOrder()),
      ...differences('balances', await this.#balances(platform), balanceTexts(this.#wanted.balances)),
    ]
  }

  #malformed(stall: Stall, number: number): Delivery {
    const id = `malformed-${number}-${stall.storeId}`
    this.#wanted.states.push(stateText(id, false, 'set_aside'))
    return { stall, id, body: `{"id": ${number}}` }
  }

  /** The order of an earlier delivery once more under another id, for much more money. */
  #again(platform: Platform, stall: Stall, number: number, { body }: Delivery): Delivery {
    const id = `again-${number}-${stall.storeId}`
    this.#wanted.states.push(stateText(id, false, 'ignored'))
    const price = 90_000_000 + number
    return { stall, id, body: orderBody({ price, createdAt: platform.clock.now(), id: orderIdIn(body) }) }
  }

  #anotherBody(platform: Platform, { stall, id }: Delivery): Delivery {
    this.#wanted.states.push(stateText(id, true, 'set_aside'))
    return { stall, id, body: orderBody({ price: 80_000_000, createdAt: platform.clock.now() }) }
  }

  #sale(platform: Platform, clicks: NewClick[], stall: Stall, number: number): Delivery {
    const id = `sale-${number}-${stall.storeId}`
    const price = 100_000 + 37 * number
    const { link, creatorId, rate } = stall.links[number % 7 === 0 ? 1 : 0] as Stall['links'][number]
    const createdAt = platform.clock.now()
    const click = platform.ids.next()
    clicks.push({ id: click, linkId: link.id, tracked: true, kind: 'visit', createdAt })
    const body = JSON.stringify({ note: NOTE, ...JSON.parse(orderBody({ price, click, createdAt })) })
    const commission = share(price, rate, WHOLE)
    const fee = share(commission, FEE_RATE, WHOLE)
    this.#wanted.states.push(stateText(id, false, 'done'))
    this.#wanted.sales.push(saleText({ id, orderId: orderIdIn(body), price, creatorId, commission, fee }))
    this.#owe(`merchant_unbilled ${stall.merchantId}`, commission + fee)
    this.#owe(`creator_pending ${creatorId}`, -commission)
    return { stall, id, body }
  }

  #owe(account: string, amount: number): void {
    this.#wanted.balances.set(account, (this.#wanted.balances.get(account) ?? 0) + amount)
  }

  #inOrder(): string[] {
    return this.#stalls.flatMap(({ storeId }) =>
      this.#wanted.sales.filter((sale) => sale.split(' ')[0]?.endsWith(storeId)),
    )
  }

  async #events(platform: Platform) {
    const events = await rowsOf(platform, 'inbound_events')
    return events.filter(({ scope }) => this.#stalls.some(({ storeId }) => storeId === scope))
  }

  /** Store by store, in the order in which they stand in their merchants' journals, which is that in which they were applied. */
  async #sales(platform: Platform): Promise<string[]> {
    const entries = await rowsOf(platform, 'ledger_entries', {}, 'sequence')
    const places = new Map(entries.map((entry, place) => [entry.subject_id, place]))
    const deliveries = new Map((await this.#events(platform)).map((event) => [event.id, event.delivery_id]))
    const texts: string[] = []
    for (const { storeId } of this.#stalls) {
      const sales = await rowsOf(platform, 'sales', { store_id: storeId })
      sales.sort((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0))
      for (const sale of sales) {
        const {
          order_id: orderId,
          net_amount: price,
          creator_id: creatorId,
          commission,
          platform_fee: fee,
        } = sale
        texts.push(
          saleText({ id: deliveries.get(sale.event_id) ?? '', orderId, price, creatorId, commission, fee }),
        )
      }
    }
    return texts
  }

  async #balances(platform: Platform): Promise<string[]> {
    const owners = this.#stalls.flatMap(({ merchantId, links }) => [
      merchantId,
      ...links.map((link) => link.creatorId),
    ])
    const balances = new Map<string, number>()
    for (const { account, owner_id, amount } of await rowsOf(platform, 'ledger_postings', {}, 'entry_id')) {
      const key = `${account} ${owner_id}`
      if (owners.includes(owner_id)) balances.set(key, (balances.get(key) ?? 0) + amount)
    }
    return balanceTexts(balances)
  }
}

async function openStall(platform: Platform): Promise<Stall> {
  const merchant = await addMerchant(platform)
  const storeId = await storeIdOf(platform, merchant.userId)
  const links: Stall['links'] = []
  for (const rate of RATES) {
    const creator = await addUser(platform, 'creator')
    const offer = await addLiveOffer(platform, merchant, { commission_rate: rate })
    links.push({
      link: await addLink(platform, merchant, creator, offer.id),
      creatorId: creator.userId,
      rate,
    })
  }
  return { merchantId: merchant.userId, storeId, links }
}

const orderIdIn = (body: string): string => String(JSON.parse(body).id)

const stateText = (id: string, conflicting: boolean, state: string): string =>
  `${id}${conflicting ? '!' : ''} ${state}`

function saleText(sale: {
  id: string
  orderId: string
  price: number
  creatorId: string | null
  commission: number
  fee: number
}): string {
  const { id, orderId, price, creatorId, commission, fee } = sale
  return `${id} order ${orderId} of ${rupees(price)}: ${rupees(commission)} to ${creatorId}, fee ${rupees(fee)}`
}

function balanceTexts(balances: ReadonlyMap<string, number>): string[] {
  return [...balances].map(([account, paisa]) => `${account} ${rupees(paisa)}`).sort()
}

/** The first place at which two lists part. */
function differences(what: string, found: readonly string[], wanted: readonly string[]): string[] {
  const length = Math.max(found.length, wanted.length)
  const at = Array.from({ length }, (_, index) => index).find((index) => found[index] !== wanted[index])
  if (at === undefined) return []
  return [`${what}: ${found.length} of ${wanted.length}; first ${found[at]}, not ${wanted[at]}`]
}
