import type { Insertable } from 'kysely'
import { exportStorage } from '../../exports/exports.service.ts'
import { runNextExport } from '../../exports/run-export.service.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import { insertRows, type NewRow } from '../../platform/database/protected-rows.ts'
import type { Schema } from '../../platform/database/schema.ts'
import type { Platform } from '../../platform/platform.ts'
import { addLink, addLiveOffer, addMerchant, storeIdOf } from './listings.ts'
import { addUser } from './people.ts'

export type ExportWorld = Awaited<ReturnType<typeof buildExportWorld>>

/**
 * Two merchants, two creators and an admin; one of the creators works for both merchants. One sale, pending order, click and application a
 * link, a sale without any link for kurta, a cycle a merchant, a payout a creator.
 */
export async function buildExportWorld(platform: Platform) {
  const [kurta, shoes] = [await addMerchant(platform, 'Kurta House'), await addMerchant(platform, 'Shoes')]
  const [ayesha, bilal] = [
    await addUser(platform, 'creator', '=ayesha, "A"'),
    await addUser(platform, 'creator', 'Bilal'),
  ]
  const admin: Actor = await addUser(platform, 'admin', 'Admin')
  const [kurtaOffer, shoesOffer] = [await addLiveOffer(platform, kurta), await addLiveOffer(platform, shoes)]
  /** Of ayesha for kurta, of ayesha for shoes, of bilal for shoes. */
  const links = [
    await addLink(platform, kurta, ayesha, kurtaOffer.id),
    await addLink(platform, shoes, ayesha, shoesOffer.id),
    await addLink(platform, shoes, bilal, shoesOffer.id),
  ] as const
  const cycleOf = new Map<string, string>()
  const storeOf = new Map<string, string>()
  for (const { userId } of [kurta, shoes]) {
    cycleOf.set(userId, await addCycle(platform, userId))
    storeOf.set(userId, await storeIdOf(platform, userId))
  }
  const world = { kurta, shoes, ayesha, bilal, admin, links, cycleOf, storeOf }
  const withoutLink: Sale = { ...saleRow(platform, world, links[0]), ...NO_LINK }
  await addSales(platform, [...links.map((link) => saleRow(platform, world, link)), withoutLink])
  const clicks = links.map(({ id: link_id }) => {
    const id = platform.ids.next()
    return { id, link_id, tracked: 1, kind: 'visit' as const, created_at: platform.clock.now() }
  })
  await platform.database.transaction(async (tx) => {
    await tx.insertInto('clicks').values(clicks).execute()
    const rows = links.map((link) => pendingOrderRow(platform, world, link))
    await insertRows(tx, 'pending_orders', rows)
  })
  await addPayout(platform, world, ayesha, { [kurta.userId]: 10_000, [shoes.userId]: 5000 })
  await addPayout(platform, world, bilal, { [shoes.userId]: 7000 })
  return world
}

type Sale = Insertable<Schema['sales']>
/** What is different in a sale whose order names no link. */
const NO_LINK = {
  ...({ acceptance_status: 'rejected', rejection_reason: 'no_tracking_reference' } as const),
  ...{ billing_cycle_id: null, offer_id: null, creator_id: null, link_id: null },
  ...{ commission: 0, commission_rate: null, platform_fee: 0 },
}
type Known = { cycleOf: Map<string, string>; storeOf: Map<string, string> }

type OrderedBy = Pick<LinkRecord, 'id' | 'merchant_id' | 'offer_id' | 'creator_id' | 'commission_rate'>

/** What an order that came by a link names, with an id of its own. */
function orderOf({ ids }: Platform, { storeOf }: Known, link: OrderedBy) {
  const id = ids.next()
  return {
    ...{ id, store_id: storeOf.get(link.merchant_id) ?? '', merchant_id: link.merchant_id },
    order_id: BigInt(`0x${id.replaceAll('-', '').slice(16)}`).toString(),
    ...{ offer_id: link.offer_id, creator_id: link.creator_id, link_id: link.id },
  }
}

/** An accepted sale that came by a link; net 1,000 rupees. */
export function saleRow(platform: Platform, world: Known, link: OrderedBy): Sale {
  const now = platform.clock.now()
  return {
    ...orderOf(platform, world, link),
    ...{ order_name: '#1001', acceptance_status: 'accepted', rejection_reason: null, click_id: null },
    ...{ net_amount: 100_000, commission_rate: link.commission_rate, commission: 12_500, platform_fee: 1250 },
    billing_cycle_id: world.cycleOf.get(link.merchant_id) ?? null,
    ...{ ordered_at: now, created_at: now, event_id: platform.ids.next(), receipt: '{}' },
  }
}

/** An order of an hour ago that waits for its payment and came by a link. */
function pendingOrderRow(platform: Platform, world: Known, link: OrderedBy): NewRow<'pending_orders'> {
  const now = platform.clock.now()
  return {
    ...orderOf(platform, world, link),
    ...{
      order_name: '#2001',
      state: 'pending',
      coupon_code: null,
      expected_commission: 12_500,
      sale_id: null,
    },
    ...{ placed_at: now - 3_600_000, version: '1', created_at: now, updated_at: now, state_at: now },
  }
}

/** Decided orders of offers, as the store of this merchant reported them. All that are paid share one sale. */
export async function addDecidedOrders(
  platform: Platform,
  merchant: Actor,
  offers: readonly { id: string; decided: number; paid: number }[],
): Promise<void> {
  const storeOf = new Map([[merchant.userId, await storeIdOf(platform, merchant.userId)]])
  const world = { storeOf, cycleOf: new Map<string, string>() }
  const link = { merchant_id: merchant.userId, creator_id: merchant.userId, commission_rate: 1 }
  const linkTo = (id: string) => ({ ...link, id, offer_id: id })
  const sale = { ...saleRow(platform, world, linkTo(merchant.userId)), ...NO_LINK }
  await addSales(platform, [sale])
  const orders = offers.flatMap(({ id, decided, paid }) =>
    Array.from({ length: decided }, (_, i): NewRow<'pending_orders'> => {
      const end =
        i < paid ? { state: 'became_sale' as const, sale_id: sale.id } : { state: 'cancelled' as const }
      return { ...pendingOrderRow(platform, world, linkTo(id)), ...end }
    }),
  )
  await platform.database.transaction((tx) => insertRows(tx, 'pending_orders', orders))
}

export async function addSales(platform: Platform, rows: readonly Sale[]): Promise<void> {
  await platform.database.transaction((tx) => tx.insertInto('sales').values(rows).execute())
}

async function addCycle({ clock, database, ids }: Platform, merchant_id: string): Promise<string> {
  const [id, now] = [ids.next(), clock.now()]
  const period = { period_start: now, period_end: now + 86_400_000, created_at: now }
  const nothing = { sales_count: 0, commission_total: 0, fee_total: 0, credit_total: 0, amount_due: 0 }
  const cycle = { id, merchant_id, state: 'open', ...period, ...nothing } as const
  await database.transaction((tx) => insertRows(tx, 'billing_cycles', [cycle]))
  return id
}

async function addPayout(
  { clock, database, ids }: Platform,
  { cycleOf }: Known,
  { userId: creator_id }: Actor,
  parts: Record<string, number>,
): Promise<void> {
  const id = ids.next()
  const amount = Object.values(parts).reduce((sum, part) => sum + part, 0)
  const unsent = { processor_payout_id: null, failure_reason: null, submitted_at: null, settled_at: null }
  const payout = { id, creator_id, state: 'pending', amount, created_at: clock.now(), ...unsent } as const
  const lines = Object.entries(parts).map(([merchant_id, part]) => {
    return { payout_id: id, billing_cycle_id: cycleOf.get(merchant_id) ?? '', merchant_id, amount: part }
  })
  await database.transaction(async (tx) => {
    await tx.insertInto('payouts').values(payout).execute()
    await tx.insertInto('payout_lines').values(lines).execute()
  })
}

/** Writes all due exports until none is left. Returns how many. */
export async function drainExports(platform: Platform): Promise<number> {
  const storage = await exportStorage(platform.config)
  const { signal } = new AbortController()
  let done = 0
  while (await runNextExport(platform, storage, signal)) done += 1
  return done
}
