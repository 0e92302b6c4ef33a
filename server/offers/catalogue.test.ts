import * as assert from 'uvu/assert'
import type { z } from 'zod'
import { type listOffersInput, type OfferSort, offerPage, offerStatus } from '../../shared/schemas/offers.ts'
import { paidRate } from '../pending-orders/pending-order.rule.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { foldedKey, foldedWords } from '../platform/database/folded-text.ts'
import type { Platform } from '../platform/platform.ts'
import { addDecidedOrders } from '../test/testkit/export-world.ts'
import { addLiveOffer, addMerchant } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { inOrderOf, offerOf } from '../test/testkit/offer-rows.ts'
import { requestOf, setSuspended } from '../test/testkit/people.ts'
import { assertMapped } from '../test/testkit/pluck.ts'
import { fc } from '../test/testkit/property.ts'
import type { OfferStatus } from './offer-status.rule.ts'
import { offersRouter } from './offers.procedures.ts'
import { setOfferStatus, updateOffer } from './offers.service.ts'
import { addOffer, type OfferRow } from './offers.store.ts'

const SORTS: readonly OfferSort[] = ['newest', 'commission_desc', 'commission_asc']

const CATEGORIES = ['Fashion', 'FASHION', 'Shoes', 'کپڑے', 'كپڑے', 'Café', 'CAFE']
const NICHES = ['Lawn', 'lawn', 'Winter', "Men's"]
/** Their paid rates: none, none, 0, 65, 66.67 and 100 percent. */
const ORDERS = [
  [0, 0],
  [19, 19],
  [20, 0],
  [20, 13],
  [21, 14],
  [20, 20],
].map(([decided = 0, paid = 0]) => ({ decided, paid }))
const WORDS = ['lawn', 'Lawns', 'kurta', 'کُرتا', 'لان', '🔥', '100%', 'Café', 'AND', '"', "men's", '3-piece']
const QUERIES = [...WORDS, ...'law|ku|lawn kurta|"lawn|-lawn|lawn*|OR|lawn OR kurta|( ) :|🔥 لا'.split('|')]

type Visitor = ReturnType<typeof offersRouter.createCaller>
type Query = Exclude<z.input<typeof listOffersInput>, undefined>

for (const { it } of marketSuites<{ merchant: Actor; visitor: Visitor }>('the catalogue')) {
  it.before.each(async (context) => {
    context.merchant = await addMerchant(context.platform)
    context.visitor = offersRouter.createCaller(requestOf(context.platform, null))
  })

  it('property: pages put together are what is sought, in order', async ({ platform, merchant, visitor }) => {
    const merchants = [merchant, await addMerchant(platform), await addMerchant(platform)]
    const suspended = merchants[2]?.userId ?? ''
    await setSuspended(platform, suspended, true)
    const rows: InsertedOffer[] = []
    const check = async (offers: DrawnOffer[], queries: SoughtQuery[]) => {
      const added: InsertedOffer[] = []
      for (const drawn of offers) added.push(await insertDrawn(platform, merchants, drawn))
      await addDecidedOrders(platform, merchant, added)
      rows.push(...added)
      for (const { owner, mine, status, ...query } of queries) {
        const scope = merchants[owner ?? 0]?.userId
        const given: Query = { ...query, ...(owner === undefined ? {} : { merchant_id: scope }) }
        const sought = mine ? { ...given, mine, ...(status ? { status } : {}) } : given
        const caller = mine ? offersRouter.createCaller(requestOf(platform, merchant)) : visitor
        const expected = rows
          .filter((row) => (mine ? row.merchant_id === merchant.userId : row.status === 'live'))
          .filter((row) => mine || row.merchant_id !== suspended)
          .filter((row) => !mine || !status || row.status === status)
          .filter((row) => isSought(row, given))
          .sort(inOrderOf(given.sort ?? 'newest'))
        assert.equal(
          await idsOf(caller, sought),
          expected.map((row) => row.id),
          JSON.stringify(sought),
        )
      }
    }
    await fc.assert(
      fc.asyncProperty(
        fc.array(drawnOffer, { minLength: 1, maxLength: 8 }),
        fc.array(drawnQuery, { minLength: 5, maxLength: 10 }),
        check,
      ),
      { numRuns: 20, endOnFailure: true },
    )
    const bounds = [undefined, 0.01, 5, 10]
    const ranges = bounds.flatMap((low) =>
      bounds.map((high) => ({ commission_min: low, commission_max: high })),
    )
    const everything = SORTS.flatMap((sort) => ranges.map((range) => ({ ...range, sort, limit: 7 })))
    await check([], everything)
  })

  it('counts live offers by category and niche, most used first', async ({ platform, merchant, visitor }) => {
    const suspended = await addMerchant(platform)
    await addLiveOffer(platform, suspended, { category: 'Shoes', niche: 'Khussa' })
    await setSuspended(platform, suspended.userId, true)
    assert.equal(await visitor.categories(), { items: [] })
    const paused = await addLiveOffer(platform, merchant, { category: 'Toys', niche: 'Wood' })
    await setOfferStatus(platform, merchant.userId, paused.id, 'paused')
    for (const [category, niche] of [
      ['Beauty', 'Attar'],
      ['Fashion', 'Lawn'],
      ['FASHION', 'lawn'],
      ['Fashion', 'Winter'],
    ] as const)
      await addLiveOffer(platform, merchant, { category, niche })
    const { items } = await visitor.categories()
    assertMapped(items, ({ category, niche, offers }) => [foldedKey(category), foldedKey(niche), offers], [
      ['fashion', 'lawn', 2],
      ['beauty', 'attar', 1],
      ['fashion', 'winter', 1],
    ])
    for (const { category, niche, offers } of items)
      assert.is((await visitor.list({ category, niche })).items.length, offers)
  })

  it('neither repeats nor skips while others change', async ({ platform, merchant, visitor }) => {
    for (const sort of SORTS) {
      const steady = new Set<string>()
      const restless: string[] = []
      for (let i = 0; i < 30; i += 1) {
        const { id } = await addLiveOffer(platform, merchant, {
          commission_rate: 500 + (i % 4) * 100,
          niche: sort,
        })
        if (i % 3 === 0) restless.push(id)
        else steady.add(id)
      }
      const seen: string[] = []
      let cursor: string | null | undefined
      do {
        const page = await visitor.list({ sort, niche: sort, limit: 4, cursor: cursor ?? undefined })
        seen.push(...page.items.map((item) => item.id))
        cursor = page.next_cursor
        const moved = restless.pop()
        if (moved && restless.length % 2) await setOfferStatus(platform, merchant.userId, moved, 'paused')
        else if (moved)
          await updateOffer(platform, merchant.userId, moved, { commission_rate: 700, title: 'x' })
        await addLiveOffer(platform, merchant, { commission_rate: 600, niche: sort })
      } while (cursor)
      const kept = seen.filter((id) => steady.has(id))
      assert.is(kept.length, steady.size, sort)
      assert.is(new Set(kept).size, steady.size, sort)
      if (sort === 'newest') assert.is(new Set(seen).size, seen.length)
    }
  })

  it('goes on from a place outside of another range', async ({ platform, merchant, visitor }) => {
    for (const commission_rate of [500, 1000, 1000, 1500, 2000])
      await addLiveOffer(platform, merchant, { commission_rate })
    const rates = async (query: Query) =>
      (await visitor.list(query)).items.map((item) => item.commission_rate)
    const down = await visitor.list({ sort: 'commission_desc', limit: 1 })
    const fromAbove = { sort: 'commission_desc', cursor: down.next_cursor ?? '' } as const
    assert.equal(await rates({ ...fromAbove, commission_max: 19.99 }), [15, 10, 10, 5])
    assert.equal(await rates({ ...fromAbove, commission_max: 10 }), [10, 10, 5])
    assert.equal(await rates({ ...fromAbove, commission_min: 20 }), [])
    const up = await visitor.list({ sort: 'commission_asc', limit: 1 })
    const fromBelow = { sort: 'commission_asc', cursor: up.next_cursor ?? '' } as const
    assert.equal(await rates({ ...fromBelow, commission_min: 10 }), [10, 10, 15, 20])
    assert.equal(await rates({ ...fromBelow, commission_max: 5 }), [])
  })

  it.run()
}

const drawnOffer = fc.record({
  owner: fc.nat(2),
  status: fc.constantFrom<OfferStatus>(...offerStatus.options, 'live', 'live', 'live'),
  category: fc.constantFrom(...CATEGORIES),
  niche: fc.constantFrom(...NICHES),
  title: fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 4 }).map((words) => words.join(' ')),
  description: fc.option(
    fc.array(fc.constantFrom(...WORDS), { maxLength: 4 }).map((words) => words.join('\n')),
  ),
  commission_rate: fc.constantFrom(1, 500, 500, 1000, 1001, 9000),
  orders: fc.constantFrom(...ORDERS),
})
type DrawnOffer = typeof drawnOffer extends fc.Arbitrary<infer Drawn> ? Drawn : never

/** Seldom, so that most of what is sought is found on several pages. */
const sometimes = <Drawn>(drawn: fc.Arbitrary<Drawn>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: drawn })
const drawnQuery = fc.record({
  category: sometimes(fc.constantFrom(...CATEGORIES)),
  niche: sometimes(fc.constantFrom(...NICHES)),
  commission_min: fc.constantFrom(undefined, undefined, 0, 0.01, 5, 10.01),
  commission_max: fc.constantFrom(undefined, undefined, 0.01, 5, 10, 100),
  paid_rate_min: sometimes(fc.constantFrom(0, 0.01, 65, 65.01, 66.67, 66.68, 100)),
  q: sometimes(fc.constantFrom(...QUERIES)),
  sort: fc.constantFrom(...SORTS),
  limit: fc.constantFrom(3, 7, 25, 100),
  owner: sometimes(fc.nat(2)),
  mine: fc.boolean(),
  status: sometimes(fc.constantFrom(...offerStatus.options)),
})

/** As callers send it, but for the merchant: the number of one instead of the id. */
type SoughtQuery = Omit<Query, 'merchant_id'> & { owner?: number | undefined }

type InsertedOffer = OfferRow & DrawnOffer['orders']

async function insertDrawn(
  platform: Platform,
  merchants: Actor[],
  drawn: DrawnOffer,
): Promise<InsertedOffer> {
  const { owner, orders, ...fields } = drawn
  const row = offerOf(platform, merchants[owner]?.userId ?? '', fields)
  await platform.database.transaction((tx) => addOffer(tx, row))
  return { ...row, ...orders }
}

/** The model: what a filter means, said once more without a database. */
function isSought(row: InsertedOffer, query: Query): boolean {
  const { category, niche, commission_min = 0, commission_max = 100, paid_rate_min, merchant_id, q } = query
  if (category !== undefined && foldedKey(category) !== foldedKey(row.category)) return false
  if (niche !== undefined && foldedKey(niche) !== foldedKey(row.niche)) return false
  if (merchant_id !== undefined && merchant_id !== row.merchant_id) return false
  if (row.commission_rate < Math.round(commission_min * 100)) return false
  if (row.commission_rate > Math.round(commission_max * 100)) return false
  if (paid_rate_min !== undefined && (paidRate(row) ?? -1) < paid_rate_min) return false
  if (q === undefined) return true
  const held = foldedWords(`${row.title} ${row.description ?? ''}`)
  const words = foldedWords(q)
  const last = words.at(-1)
  return (
    last !== undefined &&
    words.slice(0, -1).every((word) => held.includes(word)) &&
    held.some((word) => word.startsWith(last))
  )
}

/** The ids of all pages. */
async function idsOf(caller: Visitor, query: Query): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | undefined
  do {
    const page = await caller.list({ ...query, cursor })
    // The list says what it answers without looking it through: exactly that it must be, and nothing more.
    assert.equal(offerPage.parse(page), page)
    ids.push(...page.items.map((item) => item.id))
    cursor = page.next_cursor ?? undefined
  } while (cursor)
  return ids
}
