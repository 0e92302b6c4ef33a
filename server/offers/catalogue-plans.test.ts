import { CompiledQuery, sql } from 'kysely'
import * as assert from 'uvu/assert'
import type { OfferSort } from '../../shared/schemas/offers.ts'
import type { Database } from '../platform/database/database.ts'
import { foldedWords } from '../platform/database/folded-text.ts'
import { insertRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import type { TestDialect } from '../test/testkit/databases.ts'
import { addDecidedOrders } from '../test/testkit/export-world.ts'
import { addMerchant } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { offerOf } from '../test/testkit/offer-rows.ts'
import { setSuspended } from '../test/testkit/people.ts'
import { stepsOf } from '../test/testkit/statements.ts'
import { listOffers, listStatements, type OfferFilter, type OfferListing } from './offer-list.store.ts'

const OFFERS = 20_000
const SORTS: readonly OfferSort[] = ['newest', 'commission_desc', 'commission_asc']
const INDEX_ORDER = { newest: 'newest', commission_desc: 'high', commission_asc: 'low' } as const
const PUBLIC = { kind: 'public' } as const
const FIRST_PAGE = { after: null, limit: 26, paidRatesSince: 0 }

for (const { it, dialect } of marketSuites<{ database: Database; merchantId: string }>(
  'plans of the offer list',
  { shared: true },
)) {
  it.before(async (context) => {
    context.database = context.bed.platform.database
    context.merchantId = await fill(context.bed.platform)
  })

  const planOf = (
    { reader, ...database }: Database,
    listing: OfferListing,
    plan: Parameters<typeof listStatements>[2] = 'none',
  ): Promise<Plan[]> =>
    Promise.all(
      listStatements(dialect, listing, plan).map(async ({ sql: text, parameters }) => {
        const statement = CompiledQuery.raw(text, [...parameters])
        return planIn(dialect, await stepsOf({ ...database, reader }, reader, statement))
      }),
    )

  /** The first page and one from the middle. */
  const pagesOf = async (database: Database, listing: Pick<OfferListing, 'filter' | 'sort' | 'scope'>) => {
    const first = { ...listing, ...FIRST_PAGE }
    const rows = await listOffers(database.reader, dialect, { ...first, limit: 300 })
    const middle = rows[rows.length >> 1]
    if (!middle) throw new Error(`nothing is found by ${JSON.stringify(listing)}`)
    return [first, { ...first, after: { commissionRate: middle.commission_rate, id: middle.id } }]
  }

  const expectIndex = async (
    database: Database,
    filter: OfferFilter,
    sorts: readonly OfferSort[],
    prefix: string,
    scope: OfferListing['scope'] = PUBLIC,
  ) => {
    for (const sort of sorts) {
      for (const listing of await pagesOf(database, { filter, sort, scope })) {
        for (const plan of await planOf(database, listing)) {
          const said = `${JSON.stringify(listing)}: ${JSON.stringify(plan)}`
          assert.equal(plan.scans, [], said)
          assert.equal(plan.sorts, [], said)
          // PostgreSQL weighs the costs, and may take another index that brings the same order.
          if (dialect === 'postgresql') assert.ok(plan.indexes.length === 1, said)
          else assert.equal(plan.indexes, [`offers_${prefix}_${INDEX_ORDER[sort]}`], said)
        }
      }
    }
  }

  it('reads one index, without a sort, for each filter and sort', async ({ database, merchantId }) => {
    await expectIndex(database, {}, SORTS, 'live')
    await expectIndex(database, { category: 'CATEGORY 3' }, SORTS, 'category')
    await expectIndex(database, { niche: 'niche 3' }, SORTS, 'niche')
    await expectIndex(database, { category: 'category 3', niche: 'niche 3' }, SORTS, 'category_niche')
    await expectIndex(database, { merchant_id: merchantId }, SORTS, 'merchant')
    await expectIndex(database, { paid_rate_min: 0 }, SORTS, 'live')
    await expectIndex(database, { paid_rate_min: 0, category: 'category 0' }, SORTS, 'category')
    await expectIndex(database, {}, SORTS, 'merchant', { kind: 'own', merchantId, status: undefined })
    await expectIndex(database, {}, SORTS, 'merchant', { kind: 'own', merchantId, status: 'live' })
  })

  it('looks a commission range up in the index of its sort', async ({ database, merchantId }) => {
    const range = { commission_min: 500, commission_max: 2500 }
    const byRate = ['commission_desc', 'commission_asc'] as const
    await expectIndex(database, range, byRate, 'live')
    await expectIndex(database, { ...range, category: 'category 3' }, byRate, 'category')
    await expectIndex(database, { ...range, niche: 'niche 3' }, byRate, 'niche')
    const both = { ...range, category: 'category 3', niche: 'niche 3' }
    await expectIndex(database, both, byRate, 'category_niche')
    await expectIndex(database, { ...range, merchant_id: merchantId }, byRate, 'merchant')
    await expectIndex(database, range, ['newest'], 'live')
  })

  it('finds few matches of a text by its own index, and walks the index of the sort for many', async (context) => {
    for (const sort of SORTS) {
      const listing = { scope: PUBLIC, sort, ...FIRST_PAGE }
      for (const plan of await planOf(context.database, { ...listing, filter: { q: 'rare' } }, 'collect'))
        assert.equal([plan.texts.length > 0, plan.scans], [true, []], JSON.stringify(plan))
      if (dialect !== 'sqlite') continue
      for (const plan of await planOf(context.database, { ...listing, filter: { q: 'common' } }, 'scan'))
        assert.equal([plan.scans, plan.sorts], [[], []], JSON.stringify(plan))
    }
  })

  it('plans alike once SQLite has statistics', async ({ bed, database, merchantId }) => {
    if (dialect !== 'sqlite') return
    await sql`analyze`.execute(bed.testDatabase.database.writer)
    await expectIndex(database, {}, SORTS, 'live')
    await expectIndex(database, { category: 'category 3', commission_min: 500 }, SORTS, 'category')
    await expectIndex(database, { merchant_id: merchantId, niche: 'niche 0' }, SORTS, 'merchant')
  })

  it.run()
}

/** By what a statement is carried out, by the first group of the step. */
const STEPS = {
  sqlite: {
    /** Tables of ours that are read from end to end. */
    scans: /^SCAN (offers|users|offer_search_rows|pending_orders)(?! USING (?:COVERING )?INDEX)/,
    sorts: /^(USE TEMP B-TREE.*)/,
    /** By which offers are read. */
    indexes: /^(?:SCAN|SEARCH) offers USING (?:COVERING )?INDEX (\S+)/,
    /** The full-text index. */
    texts: /(offer_search) VIRTUAL TABLE/,
  },
  postgresql: {
    scans: /Seq Scan on (\w+)/,
    sorts: /((?:Incremental )?Sort) {2}\(/,
    indexes: /Scan .*\b(offers_(?!search)\w+)/,
    texts: /Scan .*\b(offers_search)\b/,
  },
}

type Plan = Record<keyof (typeof STEPS)['sqlite'], string[]>

function planIn(dialect: TestDialect, steps: string[]): Plan {
  const found = (pattern: RegExp) => steps.flatMap((step) => pattern.exec(step)?.[1] ?? [])
  const { scans, sorts, indexes, texts } = STEPS[dialect]
  return { scans: found(scans), sorts: found(sorts), indexes: found(indexes), texts: found(texts) }
}

const MERCHANTS = 2000

/** Offers of many merchants, most of them live, a few with paid rates; answers the merchant that has every twentieth of them. */
async function fill(platform: Platform): Promise<string> {
  const { clock, database, ids } = platform
  const merchants = Array.from({ length: MERCHANTS }, () => ids.next())
  const users = merchants.map((id) => ({
    ...{ id, email: `${id}@example.com`, password_hash: 'none', created_at: clock.now() },
    ...({ role: 'merchant', display_name: 'merchant', suspended_at: null } as const),
  }))
  await database.transaction((tx) => insertRows(tx, 'users', users))
  for (const id of merchants.slice(-3)) await setSuspended(platform, id, true)
  const reporter = await addMerchant(platform)
  const offer = (i: number) => {
    const title = ['Offer', i % 2 ? 'common' : '', i % 1000 ? '' : 'rare'].join(' ')
    return {
      ...offerOf(platform, merchants[i % 20 === 0 ? 0 : i % MERCHANTS] ?? '', {
        title,
        category: `Category ${i % 4}`,
        niche: `Niche ${(i >> 2) % 5}`,
        commission_rate: 500 * (1 + ((i * 7919) % 7)),
        status: i % 5 === 1 ? 'ended' : 'live',
      }),
      category_key: `category ${i % 4}`,
      niche_key: `niche ${(i >> 2) % 5}`,
      search_words: foldedWords(title).join(' '),
    }
  }
  for (let start = 0; start < OFFERS; start += 1000) {
    const rows = Array.from({ length: 1000 }, (_, i) => offer(start + i))
    await database.transaction((tx) => insertRows(tx, 'offers', rows))
    const rated = rows.filter((_, i) => i % 200 === 0)
    await addDecidedOrders(
      platform,
      reporter,
      rated.map(({ id }) => ({ id, decided: 20, paid: 0 })),
    )
  }
  if (database.dialect === 'postgresql') await sql`analyze`.execute(database.reader)
  return merchants[0] ?? ''
}
