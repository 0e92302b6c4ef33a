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

/** Two merchants, two creators and an admin; one of the creators works for both merchants. */
export interface ExportWorld {
  kurta: Actor
  shoes: Actor
  ayesha: Actor
  bilal: Actor
  admin: Actor
  /** Of ayesha for kurta, of ayesha for shoes, of bilal for shoes. */
  links: [LinkRecord, LinkRecord, LinkRecord]
  cycleOf: Map<string, string>
  storeOf: Map<string, string>
}

/** One sale, pending order, click and application a link, a sale without any link for kurta, a cycle a merchant, a payout a creator. */
export async function buildExportWorld(platform: Platform): Promise<ExportWorld> {
  const [kurta, shoes] = [await addMerchant(platform, 'Kurta House'), await addMerchant(platform, 'Shoes')]
  const [ayesha, bilal] = [
    await addUser(platform, 'creator', '=ayesha, "A"'),
    await addUser(platform, 'creator', 'Bilal'),
  ]
  const admin = await addUser(platform, 'admin', 'Admin')
  const [kurtaOffer, shoesOffer] = [await addLiveOffer(platform, kurta), await addLiveOffer(platform, shoes)]
  const links: ExportWorld['links'] = [
    await addLink(platform, kurta, ayesha, kurtaOffer.id),
    await addLink(platform, shoes, ayesha, shoesOffer.id),
    await addLink(platform, shoes, bilal, shoesOffer.id),
  ]
  const cycleOf = new Map<string, string>()
  const storeOf = new Map<string, string>()
  for (const { userId } of [kurta, shoes]) {
    cycleOf.set(userId, await addCycle(platform, userId))
    storeOf.set(userId, await storeIdOf(platform, userId))
  }
  const world = { kurta, shoes, ayesha, bilal, admin, links, cycleOf, storeOf }
  for (const link of links) await addSales(platform, [saleRow(platform, world, link)])
  await addSales(platform, [
    {
      ...saleRow(platform, world, links[0]),
      acceptance_status: 'rejected',
      rejection_reason: 'no_tracking_reference',
      billing_cycle_id: null,
      offer_id: null,
      creator_id: null,
      link_id: null,
      commission: 0,
      commission_rate: null,
      platform_fee: 0,
    },
  ])
  for (const link of links) await addClick(platform, link.id)
  await platform.database.transaction((tx) =>
    insertRows(
      tx,
      'pending_orders',
      links.map((link) => pendingOrderRow(platform, world, link)),
    ),
  )
  await addPayout(platform, world, ayesha, { [kurta.userId]: 10_000, [shoes.userId]: 5000 })
  await addPayout(platform, world, bilal, { [shoes.userId]: 7000 })
  return world
}

/** An accepted sale that came by a link, with an order id of its own; net 1,000 rupees. */
export function saleRow(
  platform: Platform,
  world: Pick<ExportWorld, 'cycleOf' | 'storeOf'>,
  link: LinkRecord,
): Insertable<Schema['sales']> {
  const now = platform.clock.now()
  const id = platform.ids.next()
  return {
    id,
    store_id: world.storeOf.get(link.merchant_id) ?? '',
    merchant_id: link.merchant_id,
    order_id: BigInt(`0x${id.replaceAll('-', '').slice(16)}`).toString(),
    order_name: '#1001',
    acceptance_status: 'accepted',
    rejection_reason: null,
    offer_id: link.offer_id,
    creator_id: link.creator_id,
    link_id: link.id,
    click_id: null,
    net_amount: 100_000,
    commission_rate: link.commission_rate,
    commission: 12_500,
    platform_fee: 1250,
    billing_cycle_id: world.cycleOf.get(link.merchant_id) ?? null,
    ordered_at: now,
    created_at: now,
    event_id: platform.ids.next(),
    receipt: '{}',
  }
}

/** An order of an hour ago that waits for its payment and came by a link. */
function pendingOrderRow(
  platform: Platform,
  { storeOf }: Pick<ExportWorld, 'storeOf'>,
  link: LinkRecord,
): NewRow<'pending_orders'> {
  const now = platform.clock.now()
  const id = platform.ids.next()
  return {
    id,
    store_id: storeOf.get(link.merchant_id) ?? '',
    merchant_id: link.merchant_id,
    order_id: BigInt(`0x${id.replaceAll('-', '').slice(16)}`).toString(),
    order_name: '#2001',
    state: 'pending',
    offer_id: link.offer_id,
    creator_id: link.creator_id,
    link_id: link.id,
    coupon_code: null,
    expected_commission: 12_500,
    sale_id: null,
    placed_at: now - 3_600_000,
    version: '1',
    ...{ created_at: now, updated_at: now, state_at: now },
  }
}

export async function addSales(
  platform: Platform,
  rows: readonly Insertable<Schema['sales']>[],
): Promise<void> {
  await platform.database.transaction((tx) => tx.insertInto('sales').values(rows).execute())
}

export async function addClick(platform: Platform, linkId: string): Promise<void> {
  const row = { link_id: linkId, tracked: 1, kind: 'visit' as const, created_at: platform.clock.now() }
  await platform.database.transaction((tx) =>
    tx
      .insertInto('clicks')
      .values({ ...row, id: platform.ids.next() })
      .execute(),
  )
}

async function addCycle(platform: Platform, merchantId: string): Promise<string> {
  const id = platform.ids.next()
  const now = platform.clock.now()
  const nothing = { sales_count: 0, commission_total: 0, fee_total: 0, credit_total: 0, amount_due: 0 }
  await platform.database.transaction((tx) =>
    insertRows(tx, 'billing_cycles', [
      {
        id,
        merchant_id: merchantId,
        state: 'open',
        period_start: now,
        period_end: now + 86_400_000,
        ...nothing,
        created_at: now,
      },
    ]),
  )
  return id
}

async function addPayout(
  platform: Platform,
  { cycleOf }: Pick<ExportWorld, 'cycleOf'>,
  creator: Actor,
  parts: Record<string, number>,
): Promise<void> {
  const id = platform.ids.next()
  const amount = Object.values(parts).reduce((sum, part) => sum + part, 0)
  await platform.database.transaction(async (tx) => {
    await tx
      .insertInto('payouts')
      .values({
        id,
        creator_id: creator.userId,
        state: 'pending',
        amount,
        processor_payout_id: null,
        failure_reason: null,
        created_at: platform.clock.now(),
        submitted_at: null,
        settled_at: null,
      })
      .execute()
    for (const [merchantId, part] of Object.entries(parts)) {
      const line = { payout_id: id, billing_cycle_id: cycleOf.get(merchantId) ?? '', merchant_id: merchantId }
      await tx
        .insertInto('payout_lines')
        .values({ ...line, amount: part })
        .execute()
    }
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
