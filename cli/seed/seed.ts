import { randomBytes } from 'node:crypto'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../fixtures/fill-fixture.ts'
import { freshOrder } from '../../fixtures/fresh-order.ts'
import type { App } from '../../server/app.ts'
import { applyToOffer, decideOnApplication } from '../../server/applications/applications.service.ts'
import { createClickRecorder, rollUpClicks } from '../../server/clicks/clicks.service.ts'
import { createInboxRecorder } from '../../server/inbox/intake.service.ts'
import { lastRuns } from '../../server/jobs/schedule-runs.service.ts'
import { drainUntilIdle } from '../../server/jobs/worker.ts'
import { couponCodesOf } from '../../server/links/coupons.service.ts'
import { type LinkRecord, resolveLink } from '../../server/links/links.service.ts'
import { createOffer, setOfferStatus } from '../../server/offers/offers.service.ts'
import type { Clock } from '../../server/platform/clock.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { isProduction, markSeeded } from '../../server/production-mark.ts'
import { updateProfile } from '../../server/profile/profile.service.ts'
import { connectStore } from '../../server/stores/stores.service.ts'
import { register } from '../../server/users/credentials.service.ts'
import { createAdmin, listUsers, peopleOf } from '../../server/users/users.service.ts'
import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import { percentToBasisPoints } from '../../shared/rates.ts'
import type { Role } from '../../shared/schemas/common.ts'
import { Failure } from '../failures.ts'
import { readFixture, readFixtures, type StoreFixture } from '../replay/fixture-files.ts'
import { ADMIN, COUPON_CODE, CREATORS, MERCHANT, OFFERS, SHOP_DOMAIN } from '../story.ts'

/** The password of every seeded account. Production refuses a seeded database, because anyone can read it here. */
const SEED_PASSWORD = 'saffron-kurta-lantern'
/** One day's orders, in turn. Each was created within two hours of its click. */
const ORDERS = [
  ['path-landing-site', 'several-lines-with-discounts', 'test-order'],
  ['note-attributes-before-landing-site', 'taxes-included'],
  ['named-product-among-others', 'not-paid', 'taxes-on-top'],
  ['draft-order', 'coupon-code', 'other-currency'],
  ['note-attributes-without-landing-site', 'gift-card'],
  ['presentment-currency', 'several-lines-with-discounts', 'self-purchase'],
  ['path-landing-site', 'taxes-included'],
] as const

const VISITS_A_DAY = 9
const AGENT =
  'Mozilla/5.0 (Linux; Android 14; SM-A155F) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36'

function accountOf(role: Role, { email, displayName }: { email: string; displayName: string }) {
  return { role, email, display_name: displayName }
}

/** What every seeded database has. */
export const SEEDED_ACCOUNTS = {
  password: SEED_PASSWORD,
  accounts: [
    accountOf('merchant', MERCHANT),
    ...CREATORS.map((creator) => accountOf('creator', creator)),
    accountOf('admin', ADMIN),
  ],
  shop_domain: SHOP_DOMAIN,
}
export type SeededAccounts = typeof SEEDED_ACCOUNTS
export type Seeded = Awaited<ReturnType<typeof seed>>

/** A clock that stands until it is moved. Times in epoch ms. */
export class MovingClock implements Clock {
  #now: number

  constructor(start: number) {
    this.#now = start
  }

  now(): number {
    return this.#now
  }

  /** Never moves back. */
  moveTo(time: number): void {
    this.#now = Math.max(this.#now, time)
  }
}

/** When the story begins, so that it ends at `now` (epoch ms): old enough for a click whose window is over. */
export function storyStart(now: number): number {
  return now - 40 * DAY_MS
}

export function refuseProductionSettings({ platform }: App): void {
  if (platform.config.NODE_ENV !== 'production') return
  throw new Failure('Refused: NODE_ENV is production, and a seed is for development.', { code: 'forbidden' })
}

/** Refuses a database of production, with accounts, or on which the service has run. It must be migrated. */
export async function refuseUsedDatabase({ platform, database }: App): Promise<void> {
  if (await isProduction(database.reader)) {
    throw new Failure('Refused: this is a database of production.', { code: 'forbidden' })
  }
  const { items } = await listUsers(platform, { limit: 1 })
  const used = (await lastRuns(platform)).length > 0
  if (items.length === 0 && !used) return
  const what = items.length > 0 ? 'has accounts' : 'has been used by the service'
  throw new Failure(
    `Refused: the database ${what}, and a seed fills a new one. Delete the database, or name another in DATABASE_URL.`,
    { code: 'conflict' },
  )
}

/**
 * Fills an empty development database through the services: a merchant with a store, two creators and an admin, offers, approved links,
 * clicks and a week of orders, under a clock that ends at `now` (epoch ms).
 */
export async function seed(app: App, clock: MovingClock, now: number) {
  const { platform } = app
  await markSeeded(app.database, now)
  const { merchant, creators } = await registerPeople(platform)
  const { id: storeId } = await connectStore(platform, merchant, {
    shop_domain: SHOP_DOMAIN,
    webhook_secret: randomBytes(32).toString('hex'),
  })
  const offers: string[] = []
  for (const offer of OFFERS) {
    const commission_rate = percentToBasisPoints(offer.commission_rate) ?? 0
    const terms = { description: null, image_url: null, ...offer, commission_rate }
    const { id } = await createOffer(platform, merchant, terms)
    await setOfferStatus(platform, merchant, id, 'live')
    offers.push(id)
  }
  const [suit = '', summer = '', khussa = ''] = offers
  const [sana = '', bilal = ''] = creators
  const slugs: string[] = []
  for (const [creator, offerId, coupon_code] of [
    [sana, suit, COUPON_CODE],
    [bilal, suit, 'BILAL10'],
    [sana, summer, 'SUMMER5'],
  ] as const) {
    const { id } = await applyToOffer(platform, creator, offerId, { message: null, promotion_url: null })
    const decision = { decision: 'approve', reason: null, coupon_code } as const
    const { link } = await decideOnApplication(platform, merchant, id, decision)
    if (!link) throw new Error('an approval makes a link')
    slugs.push(link.slug)
  }
  await applyToOffer(platform, bilal, khussa, { message: 'Khussa reviews every Friday', promotion_url: null })
  const links = await Promise.all(slugs.map((slug) => resolveLink(platform, slug)))
  const counts = await tellStory(app, clock, now, storeId, links)
  return {
    ...SEEDED_ACCOUNTS,
    offers: offers.length,
    /** Of the approved links: the first creator's to the first offer comes first. */
    slugs,
    ...counts,
  }
}

async function registerPeople(platform: Platform): Promise<{ merchant: string; creators: string[] }> {
  await createAdmin(platform, ADMIN.email, SEED_PASSWORD, ADMIN.displayName)
  const merchant = await register(platform, { ...MERCHANT, password: SEED_PASSWORD, role: 'merchant' })
  const creators: string[] = []
  for (const { iban, ...creator } of CREATORS) {
    const { userId: id } = await register(platform, { ...creator, password: SEED_PASSWORD, role: 'creator' })
    const destination = { iban, account_title: creator.displayName.toUpperCase() }
    await updateProfile(platform, id, { destination, currentPassword: SEED_PASSWORD })
    creators.push(id)
  }
  return { merchant: merchant.userId, creators }
}

/** Visitors and orders of the last week, and one old click. */
async function tellStory(
  { platform, processor, eventRules }: App,
  clock: MovingClock,
  now: number,
  storeId: string,
  links: readonly LinkRecord[],
): Promise<{ clicks: number; orders: number }> {
  const { reader } = platform.database
  const { storeSales } = await readFixtures()
  const creators = await peopleOf(
    reader,
    links.map((link) => link.creator_id),
  )
  const recorder = createClickRecorder(platform)
  const counts = { clicks: 0, orders: 0 }
  const linkAt = (index: number) => links[index % links.length] as LinkRecord

  async function visit(link: LinkRecord): Promise<string> {
    const id = platform.ids.next()
    counts.clicks += 1
    await recorder.record({
      id,
      linkId: link.id,
      tracked: true,
      kind: 'visit',
      createdAt: clock.now(),
      // A documentation network (RFC 5737); each visitor has an address of their own.
      address: `203.0.113.${counts.clicks}`,
      agent: AGENT,
    })
    return id
  }

  /** A visitor buys, and the store reports it two hours later. */
  async function order(fixture: StoreFixture, link: LinkRecord): Promise<void> {
    const clickAt = clock.now()
    const text = freshOrder(await readFixture('store-sales', fixture.file), fixture, 2001 + counts.orders)
    const body = fillFixture(text, {
      click: await visit(link),
      clickAt,
      creatorEmail: creators.get(link.creator_id)?.email ?? '',
      productId: FIXTURE_PRODUCT_ID,
      coupon: (await couponCodesOf(reader, [link.id])).get(link.id) ?? '',
    })
    clock.moveTo(clickAt + 2 * HOUR_MS)
    await createInboxRecorder(platform).record({
      source: 'store',
      scope: storeId,
      deliveryId: platform.ids.next(),
      topic: 'orders/paid',
      rawBody: Buffer.from(body),
    })
    await drainUntilIdle({ platform, processor, eventRules })
    counts.orders += 1
  }

  clock.moveTo(now - 35 * DAY_MS)
  for (const link of links) await visit(link)
  for (const [day, names] of ORDERS.entries()) {
    clock.moveTo(now - (ORDERS.length - day) * DAY_MS)
    for (let at = 0; at < VISITS_A_DAY; at += 1) {
      await visit(linkAt(at))
      clock.moveTo(clock.now() + HOUR_MS)
    }
    for (const [at, name] of names.entries()) {
      const fixture = storeSales.find((one) => one.name === name)
      if (!fixture) throw new Error(`there is no fixture ${name}`)
      await order(fixture, linkAt(day + at))
    }
  }
  await recorder.idle()
  clock.moveTo(now)
  await rollUpClicks(platform)
  return counts
}
