import { readReceipt } from '../../sales/accept-sale.rule.ts'
import { eventually } from '../testkit/eventually.ts'
import { addLink, addLiveOffer, addMerchant, OFFER } from '../testkit/listings.ts'
import { addUser } from '../testkit/people.ts'
import { openServiceBed, type ServiceBed } from '../testkit/service-bed.ts'
import { Storefront } from './storefront.ts'

/** The host of the offer's product page, which the storefront answers for. */
export const HOST = new URL(OFFER.product_url).hostname
export const HOME = `https://${HOST}/`

/** A running service with a live offer and two creators' links to it, and the store that sells the product. */
export class Market {
  readonly bed: ServiceBed
  readonly store: Storefront
  /** Where the store listens in place of port 443 of `HOST`. */
  readonly port: number
  /** Slugs. */
  readonly links: { sana: string; bilal: string }

  private constructor(bed: ServiceBed, store: Storefront, port: number, links: Market['links']) {
    this.bed = bed
    this.store = store
    this.port = port
    this.links = links
  }

  static async open(): Promise<Market> {
    const bed = await openServiceBed('sqlite')
    const { platform } = bed.service.app
    const merchant = await addMerchant(platform)
    const { id } = await addLiveOffer(platform, merchant)
    const slugOf = async (name: string) =>
      (await addLink(platform, merchant, await addUser(platform, 'creator', name), id)).slug
    const links = { sana: await slugOf('Sana'), bilal: await slugOf('Bilal') }
    const store = new Storefront(HOST, {
      url: bed.url,
      shopDomain: `s${merchant.userId}.myshopify.com`,
      secret: `secret-${merchant.userId}`,
    })
    return new Market(bed, store, await store.open(), links)
  }

  async close(): Promise<void> {
    await this.store.close()
    await this.bed.close()
  }

  /** Waits until a cart of the store carries the reference. */
  async carried(reference: string): Promise<void> {
    await eventually(
      async () => [...this.store.carts.values()].map(({ attributes }) => attributes.aff_ref),
      (found) => found.includes(reference),
    )
  }

  /** Waits until no page asks the store for anything. */
  async quiet(): Promise<void> {
    await eventually(() => this.store.isQuiet())
  }

  /** What became of each order since the store was reopened, oldest first. */
  async outcomes(): Promise<string[]> {
    const { orders } = this.store
    const { reader } = this.bed.service.app.platform.database
    const sales = await eventually(
      () => reader.selectFrom('sales').selectAll().where('order_id', 'in', orders).execute(),
      (rows) => rows.length === orders.length,
    )
    return orders.map((order) => {
      const sale = sales.find(({ order_id }) => order_id === order)
      const source = readReceipt(sale?.receipt ?? '')?.facts.order.tracking_source
      return sale?.acceptance_status === 'accepted'
        ? `accepted by ${source}: ${sale.click_id}`
        : `rejected: ${sale?.rejection_reason}`
    })
  }
}
