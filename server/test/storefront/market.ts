import { readReceipt } from '../../sales/accept-sale.rule.ts'
import { eventually } from '../testkit/eventually.ts'
import { accessOf, addLink, addLiveOffer, addMerchant, OFFER } from '../testkit/listings.ts'
import { addUser } from '../testkit/people.ts'
import { openServiceBed } from '../testkit/service-bed.ts'
import { Storefront } from './storefront.ts'

/** The host of the offer's product page, which the storefront answers for. */
export const HOST = new URL(OFFER.product_url).hostname
export const HOME = `https://${HOST}/`

export type Market = Awaited<ReturnType<typeof openMarket>>

/** A running service with a live offer and two creators' links to it, and the store that sells the product. */
export async function openMarket() {
  const bed = await openServiceBed('sqlite')
  const { platform } = bed.service.app
  const merchant = await addMerchant(platform)
  const { id } = await addLiveOffer(platform, merchant)
  const slugOf = async (name: string) =>
    (await addLink(platform, merchant, await addUser(platform, 'creator', name), id)).slug
  const { domain, secret } = accessOf(merchant)
  const store = new Storefront(HOST, { url: bed.url, shopDomain: domain, secret })
  return {
    bed,
    store,
    /** Where the store listens in place of port 443 of `HOST`. */
    port: await store.open(),
    /** Slugs. */
    links: { sana: await slugOf('Sana'), bilal: await slugOf('Bilal') },
    async close(): Promise<void> {
      await store.close()
      await bed.close()
    },
    /** Waits until a cart of the store carries the reference. */
    async carried(reference: string): Promise<void> {
      await eventually(() =>
        [...store.carts.values()].some(({ attributes }) => attributes.aff_ref === reference),
      )
    },
    /** Waits until no page asks the store for anything. */
    async quiet(): Promise<void> {
      await eventually(() => store.isQuiet())
    },
    /** What became of each order since the store was reopened, oldest first. */
    async outcomes(): Promise<string[]> {
      const { orders } = store
      const { reader } = platform.database
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
    },
  }
}
