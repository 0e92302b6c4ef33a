import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { SaleWithSlug } from '../../server/sales/sales.service.ts'
import { formatMoney, type Paisa, parseMoney } from '../../shared/money.ts'
import { SALE_REJECTION_REASONS } from '../../shared/rejection-reasons.ts'

const FIXTURES = new URL('../../fixtures/', import.meta.url)

const saleExpectation = z.object({
  acceptance_status: z.enum(['accepted', 'rejected']),
  rejection_reason: z.enum(SALE_REJECTION_REASONS).nullable(),
  net_amount: z.string(),
  commission: z.string(),
  platform_fee: z.string(),
})

const storeFixture = z.object({
  file: z.string(),
  title: z.string(),
  order_id: z.string(),
  order_name: z.string(),
  terms: z.object({
    commission_rate_percent: z.number(),
    attribution_window_days: z.number(),
    product_ids: z.array(z.string()).nullable(),
  }),
  /** The net amount of each line, where it depends on the products that a link names. */
  lines: z.array(z.object({ product_id: z.string().nullable(), net: z.string() })).optional(),
  /** The fixture is about time: it starts from a click of at least so many days ago. */
  click: z.object({ days_ago: z.number(), required: z.boolean() }).optional(),
  expect: saleExpectation,
  why: z.string(),
})

const processorFixture = z.object({
  file: z.string(),
  title: z.string(),
  needs: z.enum(['nothing', 'closed cycle', 'charged cycle', 'submitted payout', 'paid payout']),
  expect: z.object({
    reading: z.string(),
    /** The event's state until its retries have ended. */
    at_first: z.literal('pending').optional(),
    event: z.enum(['done', 'ignored', 'set_aside']),
    cycle: z.string().optional(),
    payout: z.string().optional(),
    flagged: z.boolean(),
  }),
})

export type SaleExpectation = z.infer<typeof saleExpectation>
export type StoreFixture = z.infer<typeof storeFixture> & { name: string }
export type ProcessorFixture = z.infer<typeof processorFixture> & { name: string }

export interface Fixtures {
  storeSales: StoreFixture[]
  processor: ProcessorFixture[]
}

/** Both manifests: each fixture, named by its file without the ending, with what it must lead to. */
export async function readFixtures(): Promise<Fixtures> {
  const [storeSales, processor] = await Promise.all([
    readManifest('store-sales.manifest.json', storeFixture),
    readManifest('processor.manifest.json', processorFixture),
  ])
  return { storeSales, processor }
}

async function readManifest<Item extends { file: string }>(name: string, item: z.ZodType<Item>) {
  const items = z.array(item).parse(JSON.parse(await readFile(new URL(name, FIXTURES), 'utf8')))
  return items.map((one) => ({ ...one, name: one.file.replace(/\.json$/, '') }))
}

/** A fixture's text with its placeholders. */
export function readFixture(kind: 'store-sales' | 'processor', file: string): Promise<string> {
  return readFile(new URL(`${kind}/${file}`, FIXTURES), 'utf8')
}

/** An amount of a manifest or of the wire, in paisa. */
export function amountOf(text: string): Paisa {
  const amount = parseMoney(text)
  if (amount === null) throw new Error(`"${text}" is not a valid amount`)
  return amount
}

/** What a sale came to, in the manifest's words. */
export function resultOf(sale: SaleWithSlug): SaleExpectation {
  const { acceptance_status, rejection_reason, net_amount, commission, platform_fee } = sale
  return {
    acceptance_status,
    rejection_reason,
    net_amount: formatMoney(net_amount),
    commission: formatMoney(commission),
    platform_fee: formatMoney(platform_fee),
  }
}

/** What an order must lead to, for people. */
export function expectedSale(expect: SaleExpectation): string {
  if (expect.acceptance_status === 'rejected') return `rejected: ${expect.rejection_reason}`
  return `accepted: net ${expect.net_amount}, commission ${expect.commission}, fee ${expect.platform_fee}`
}

/** What a processor fixture must lead to, for people. */
export function expectedEvent({ expect }: ProcessorFixture): string {
  const parts = [
    expect.at_first && 'tried again for half an hour',
    `event ${expect.event}`,
    expect.cycle && `cycle ${expect.cycle}`,
    expect.payout && `payout ${expect.payout}`,
    expect.flagged && 'flagged',
  ]
  return parts.filter(Boolean).join(', ')
}
