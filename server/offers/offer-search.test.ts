import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import type { OfferSort } from '../../shared/schemas/offers.ts'
import { foldOffers } from '../migrations/00006-values.ts'
import { ddl } from '../migrations/ddl.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { foldedWords } from '../platform/database/folded-text.ts'
import { lockRows } from '../platform/database/protected-rows.ts'
import { addLiveOffer, addMerchant, OFFER } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { addOffers, inOrderOf, offerOf } from '../test/testkit/offer-rows.ts'
import { requestOf, setSuspended } from '../test/testkit/people.ts'
import { anyCharacter, fc } from '../test/testkit/property.ts'
import { listOffers, MOST_SORTED_MATCHES, type OfferListing } from './offer-list.store.ts'
import { offersRouter } from './offers.procedures.ts'
import { createOffer, type OfferFields, setOfferStatus, updateOffer } from './offers.service.ts'
import { assignOffer, type OfferRow } from './offers.store.ts'

const SORTS: readonly OfferSort[] = ['newest', 'commission_desc', 'commission_asc']

type Visitor = ReturnType<typeof offersRouter.createCaller>
type Query = NonNullable<Parameters<Visitor['list']>[0]>

const PUBLIC = { scope: { kind: 'public' }, filter: {}, sort: 'newest' } as const
const LISTING: OfferListing = { ...PUBLIC, after: null, limit: 26, paidRatesSince: 0 }

for (const { it, dialect } of marketSuites<{ merchant: Actor; visitor: Visitor }>('text search of offers')) {
  it.before.each(async (context) => {
    context.merchant = await addMerchant(context.platform)
    context.visitor = offersRouter.createCaller(requestOf(context.platform, null))
  })

  it('finds words in any script, whatever is typed', async ({ platform, merchant, visitor }) => {
    await addLiveOffer(platform, merchant, { title: '🔥 لان کُرتا — 3-piece', description: 'Café "Anarkali"' })
    await addLiveOffer(platform, merchant, { title: "Men's khussa", description: null })
    const found = async (q: string) => (await visitor.list({ q })).items.map((item) => item.title.slice(0, 5))
    const first = ['🔥 لان'.slice(0, 5)]
    const every = 'لان|لا|کرتا|كُرتا|🔥|CAFE|anarkali|piece 3|"anarkali" cafe|anar'.split('|')
    for (const q of every) assert.equal(await found(q), first, q)
    for (const q of ['mens', 'MEN’S KHUSSA', 'khus']) assert.equal(await found(q), ["Men's"], q)
    const signs = `* " ' \\ :* & 🇵🇰 % ()`.split(' ')
    const none = "narkali|anar cafe|'; drop table offers; --|NEAR(lawn kurta)|words:lawn|NOT".split('|')
    for (const q of [...signs, ...none, 'x'.repeat(200)]) assert.equal(await found(q), [], q)
  })

  it('finds Urdu words by similar letters, also in old', async ({ bed, platform, merchant, visitor }) => {
    const { id } = await addLiveOffer(platform, merchant, { title: 'جمعۃ سیل', description: 'ھاتھ کا کام' })
    const finds = async (query: Query) => (await visitor.list(query)).items.length === 1
    const words = ['جمعة', 'جمعہ', 'ہاتھ', 'هاته كا', 'ہاتہ کا کام']
    for (const q of words) assert.ok(await finds({ q }), q)
    assert.not.ok(await finds({ q: 'گام' }))
    const { writer } = bed.testDatabase.database
    const asBefore = { search_words: 'جمعۃ سیل ھاتھ کا کام', category_key: 'ڪپڙی', niche_key: 'ھاتھ' }
    await writer.updateTable('offers').set(asBefore).where('id', '=', id).execute()
    assert.not.ok(await finds({ q: 'جمعہ' }))
    const statements = foldOffers(ddl(dialect)).filter((statement) => statement !== '')
    for (const statement of statements) await sql.raw(statement).execute(writer)
    for (const q of words) assert.ok(await finds({ q, category: 'کپڙي', niche: 'ہاته' }), q)
  })

  it('property: no text breaks the search', async ({ platform, merchant, visitor }) => {
    const { id } = await addLiveOffer(platform, merchant)
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: anyCharacter, minLength: 1, maxLength: 60 }), async (text) => {
        const fields = { title: `Offer ${text}`, category: text, niche: text } as const
        await platform.database.transaction(async (tx) => {
          const [offer] = await lockRows(tx, 'offers', { id })
          assert.ok(offer)
          await assignOffer(tx, offer, storable(fields), platform.clock.now())
        })
        const { scope, ...rest } = LISTING
        const search = (filter: OfferListing['filter']) =>
          listOffers(platform.database.reader, dialect, { scope, ...rest, filter })
        const { title, category, niche } = storable(fields)
        assert.is((await search({ q: title, category, niche })).length, 1)
        // What the edge refuses never gets here: PostgreSQL cannot hold a NUL, so the words around one would be others.
        assert.is((await search({ q: category })).length, foldedWords(category).length > 0 ? 1 : 0)
      }),
      { numRuns: 100 },
    )
    assert.ok((await visitor.list({ q: 'offer' })).items.length === 1)
  })

  it('follows every edit of texts and status', async ({ platform, merchant, visitor }) => {
    const alpha = { ...OFFER, title: 'Alpha', description: 'Beta' }
    const { id } = await createOffer(platform, merchant.userId, alpha)
    const shows = async (query: Query) => (await visitor.list(query)).items.length === 1
    const edit = (fields: Partial<OfferFields>) => updateOffer(platform, merchant.userId, id, fields)
    assert.not.ok(await shows({ q: 'alpha' }))
    await setOfferStatus(platform, merchant.userId, id, 'live')
    assert.ok(await shows({ q: 'alpha beta' }))
    await edit({ title: 'Gamma' })
    assert.not.ok(await shows({ q: 'alpha' }))
    assert.ok(await shows({ q: 'gamma beta' }))
    await edit({ description: null, category: 'Töys', niche: 'Wood' })
    assert.not.ok(await shows({ q: 'beta' }))
    assert.ok(await shows({ q: 'gamma', category: 'toys', niche: 'WOOD' }))
    assert.not.ok(await shows({ category: OFFER.category }))
    await setOfferStatus(platform, merchant.userId, id, 'paused')
    assert.not.ok(await shows({ q: 'gamma' }))
    await setOfferStatus(platform, merchant.userId, id, 'live')
    await setSuspended(platform, merchant.userId, true)
    assert.not.ok(await shows({ q: 'gamma' }))
    await setSuspended(platform, merchant.userId, false)
    assert.ok(await shows({ q: 'gamma' }))
  })

  it('finds the same by sorting few matches and by walking past many', async ({ platform, merchant }) => {
    const total = 1.5 * MOST_SORTED_MATCHES
    const tenths = new Set<string>()
    const offers = Array.from({ length: total }, (_, i) => {
      const title = i % 5 === 4 ? 'Other' : 'Common'
      const description = i % 10 === 0 ? 'tenth' : null
      return offerOf(platform, merchant.userId, { title, description, commission_rate: 1 + (i % 7) })
    })
    await addOffers(platform, offers)
    for (const { id, description } of offers) if (description) tenths.add(id)
    const page = { ...LISTING, limit: 100 }
    for (const sort of SORTS) {
      for (const [text, size] of [
        ['common', 0.8 * total],
        ['common tenth', 0.1 * total],
        ['tent', 0.1 * total],
        ['comm', 0.8 * total],
      ] as const) {
        const seen: OfferRow[] = []
        for (;;) {
          const last = seen.at(-1)
          const after = last ? { commissionRate: last.commission_rate, id: last.id } : null
          const listing = { ...page, sort, after, filter: { q: text } }
          const rows = await listOffers(platform.database.reader, dialect, listing)
          seen.push(...rows)
          if (rows.length < page.limit) break
        }
        assert.is(new Set(seen.map((row) => row.id)).size, size)
        assert.equal(seen, [...seen].sort(inOrderOf(sort)))
        assert.ok(seen.every((row) => (text.includes('ten') ? tenths.has(row.id) : row.title === 'Common')))
      }
    }
  })

  it.run()
}

/** What PostgreSQL can hold: the wire's schema lets no NUL pass. */
function storable<Fields extends Record<string, string>>(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, text]) => [name, text.replaceAll('\0', '').toWellFormed()]),
  ) as Fields
}
