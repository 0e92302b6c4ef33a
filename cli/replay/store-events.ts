import { randomInt, randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { FIXTURE_PRODUCT_ID, type FixtureValues, fillFixture } from '../../fixtures/fill-fixture.ts'
import { freshOrder } from '../../fixtures/fresh-order.ts'
import type { App } from '../../server/app.ts'
import { earlierVisits, linksOfClicks } from '../../server/clicks/clicks.service.ts'
import { couponCodesOf } from '../../server/links/coupons.service.ts'
import { resolveLink, type ShownLink } from '../../server/links/links.service.ts'
import { Refusal } from '../../server/platform/api/refusal.ts'
import { findOrder } from '../../server/sales/sale-explanation.service.ts'
import { signShopifyBody } from '../../server/shopify/signature.ts'
import { listStores, shopDomainsOf } from '../../server/stores/stores.service.ts'
import { claimsForWebhook, type WebhookClaim } from '../../server/stores/webhook-claims.service.ts'
import { peopleOf } from '../../server/users/users.service.ts'
import { DAY_MS } from '../../shared/durations.ts'
import { formatMoney } from '../../shared/money.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { expectSale } from './expected-sale.ts'
import { expectedSale, readFixture, readFixtures, resultOf, type StoreFixture } from './fixture-files.ts'
import type { PickedLink } from './pick-link.ts'
import { changed } from './processor-events.ts'
import type { Outcome, Sendable, Session, SignedEvent } from './session.ts'

const NO_CLICK = 'no-click'

/** Orders as the store would send them, each from a click of its own and signed with the store's secret. No date is in the future. */
export async function prepareOrders(
  session: Session,
  fixtures: readonly StoreFixture[],
  picked: PickedLink | Failure,
) {
  const { app, options } = session
  const texts = await Promise.all(fixtures.map(({ file }) => readFixture('store-sales', file)))
  // What needs something that the database does not have, with the reason.
  const skipped: { fixture: string; reason: string }[] = []
  const prepared = { events: [] as SignedEvent[], skipped, hasClicks: texts.some(needsClick) }
  if (prepared.hasClicks && picked instanceof Failure) throw picked
  if (fixtures.length === 0) return prepared
  const known = picked instanceof Failure ? null : picked.link
  const sender = await sendingStore(app, { store: options.store, link: known?.slug })
  for (const [at, fixture] of fixtures.entries()) {
    const text = texts[at] ?? ''
    const link = needsClick(text) ? known : null
    const values = link ? await valuesFor(session, link, fixture) : valuesWithoutClick(app)
    const lacks =
      values === null
        ? `it needs a click on ${link?.slug} of ${fixture.click?.days_ago} days ago`
        : needsCoupon(text) && values.coupon === undefined
          ? `link ${link?.slug} has no coupon code. Give it one: affiliate links set-coupon ${link?.slug} CODE`
          : null
    if (values === null || lacks !== null) {
      prepared.skipped.push({ fixture: fixture.name, reason: lacks ?? '' })
      continue
    }
    const { body, expected } = await fillOrder(session, sender, { fixture, text, values }, link)
    prepared.events.push(signAsStore(session, sender, { fixture: fixture.name, expected }, body))
  }
  return prepared
}

const SALE = 'path-landing-site'
/** Of the fixture, and with its delivery, paisa. */
const LEAST_PRICE = 499_900
const DELIVERY = 20_000

/** An order through the link whose commission is at least `commission` (paisa). */
export async function prepareSale(
  session: Session,
  link: ShownLink,
  commission: number,
): Promise<SignedEvent> {
  const { app, options } = session
  const values = { ...(await clickValues(session, link)), notAfter: app.platform.clock.now() }
  const body = Buffer.from(await saleBody(values, priceFor(link, commission)))
  const sender = await sendingStore(app, { store: options.store, link: link.slug })
  return signAsStore(session, sender, { fixture: SALE, expected: null }, body)
}

/** What one piece costs at least, so that its commission is `commission`; paisa. */
export function priceFor(link: { commission_rate: number } | null, commission: number): number {
  return Math.max(LEAST_PRICE, link ? Math.ceil((commission * 10_000) / link.commission_rate) : 0)
}

/** A new order of one piece at `price` (paisa), paid. */
export async function saleBody(values: FixtureValues, price: number): Promise<string> {
  const { storeSales } = await readFixtures()
  const fixture = storeSales.find(({ name }) => name === SALE)
  if (!fixture) throw new Error(`there is no fixture ${SALE}`)
  const text = freshOrder(await readFixture('store-sales', fixture.file), fixture)
    .replaceAll(formatMoney(LEAST_PRICE), formatMoney(price))
    .replaceAll(formatMoney(LEAST_PRICE + DELIVERY), formatMoney(price + DELIVERY))
  return fillFixture(text, values)
}

function needsClick(text: string): boolean {
  return /\{\{(click|creator_email|coupon)\}\}/.test(text)
}

function needsCoupon(text: string): boolean {
  return text.includes('{{coupon}}')
}

async function fillOrder(
  { app, options: { same } }: Session,
  sender: Sender,
  { fixture, text, values }: { fixture: StoreFixture; text: string; values: FixtureValues },
  link: ShownLink | null,
): Promise<{ body: Buffer; expected: Sendable['expected'] }> {
  const notAfter = app.platform.clock.now()
  const filled = fillFixture(same ? text : freshOrder(text, fixture), { ...values, notAfter })
  const body = Buffer.from(filled)
  if (same && (await isRecorded(app, fixture.order_id, sender.store.storeId))) {
    return { body, expected: RECORDED_ALREADY }
  }
  const { created_at } = JSON.parse(filled) as { created_at: string }
  const expect = expectSale(fixture, {
    terms: link,
    linkOfSender: link?.merchant_id === sender.store.merchantId,
    clickedAt: values.clickAt,
    orderedAt: Date.parse(created_at),
    byCoupon: needsCoupon(text),
    productId: values.productId,
    platformFeeRate: app.platform.config.PLATFORM_FEE_RATE,
  })
  const isMet = ({ sale }: Outcome) => sale !== null && isDeepStrictEqual(resultOf(sale), expect)
  return { body, expected: { text: expectedSale(expect), isMet } }
}

/** A second report of an order changes nothing. */
const RECORDED_ALREADY: Sendable['expected'] = {
  text: 'ignored: recorded already',
  isMet: ({ event }) => event?.state === 'ignored',
}

async function isRecorded({ platform }: App, orderId: string, storeId: string): Promise<boolean> {
  try {
    return (await findOrder(platform, orderId, storeId)).length > 0
  } catch (error) {
    if (error instanceof Refusal && error.code === 'not_found') return false
    throw error
  }
}

export interface Sender {
  domain: string
  store: WebhookClaim
}

/** The bytes under the store's signature, or what `--corrupt` makes of it. */
export function signAsStore(
  { app, options: { corrupt, eventId } }: Session,
  { domain, store }: Sender,
  { topic = 'orders/paid', ...event }: Sendable & { topic?: string | null },
  body: Buffer,
): SignedEvent {
  if (corrupt === 'timestamp') {
    throw wrongUsage('Stores sign no time, so there is none to break: use --corrupt signature or body.')
  }
  const deliveryId = eventId ?? randomUUID()
  const secret = corrupt === 'signature' ? randomUUID() : (store.keys[0] ?? '')
  return {
    ...event,
    path: '/webhooks/store-sales',
    rawBody: corrupt === 'body' ? changed(body) : body,
    delivery: { scope: store.storeId, deliveryId },
    headers: {
      ...(topic === null ? {} : { 'x-shopify-topic': topic }),
      'x-shopify-hmac-sha256': signShopifyBody(body, secret),
      'x-shopify-shop-domain': domain,
      'x-shopify-webhook-id': deliveryId,
      'x-shopify-event-id': randomUUID(),
      'x-shopify-triggered-at': new Date(app.platform.clock.now()).toISOString(),
      'x-shopify-api-version': '2026-10',
    },
  }
}

/** The store named, else the newest of the link's merchant, else the only one there is. */
export async function sendingStore(
  app: App,
  options: { store?: string | undefined; link?: string | undefined },
): Promise<Sender> {
  const named = options.store ?? (await onlyStore(app, options.link))
  const domain = (await shopDomainsOf(app.database.reader, [named])).get(named) ?? named.toLowerCase()
  const claims = await claimsForWebhook(app.platform, domain)
  const stores = domain === named.toLowerCase() ? claims : claims.filter((claim) => claim.storeId === named)
  const [store] = stores
  if (!store) throw new Failure(`No store ${named} is connected.`, { code: 'not_found' })
  if (stores.length === 1) return { domain, store }
  throw new Failure(
    `${stores.length} merchants have connected ${domain}. Name one store by id with --store.`,
    {
      extra: { candidates: stores.map(({ storeId, merchantId }) => ({ storeId, merchantId })) },
      lines: stores.map(({ storeId, merchantId }) => `  ${storeId}  of merchant ${merchantId}`),
    },
  )
}

/** The id of the store that is meant. */
async function onlyStore({ platform }: App, slug: string | undefined): Promise<string> {
  const merchantId = slug === undefined ? null : (await resolveLink(platform, slug)).merchant_id
  const { items } = await listStores(platform, merchantId, { limit: 100 })
  const stores = items.filter((store) => store.removed_at === null)
  const [first] = stores
  if (first === undefined) {
    const problem = 'No store is connected that could send it. Connect one with POST /stores.'
    throw new Failure(problem, { code: 'not_found' })
  }
  if (slug !== undefined || stores.length === 1) return first.id
  const domains = stores.map((store) => store.shop_domain)
  throw new Failure(`There are ${domains.length} stores. Name the one that sends it with --store.`, {
    extra: { candidates: domains },
    lines: domains.map((domain) => `  ${domain}`),
  })
}

export function valuesWithoutClick(app: App): FixtureValues {
  const clickAt = app.platform.clock.now()
  return { click: NO_CLICK, clickAt, creatorEmail: NO_CLICK, productId: FIXTURE_PRODUCT_ID }
}

const MOST_VISITS = 100

/** A click of the age that the fixture needs, else a new one; `null` if the fixture cannot do without its age. */
async function valuesFor(
  session: Session,
  link: ShownLink,
  { click: needed }: StoreFixture,
): Promise<FixtureValues | null> {
  const { app } = session
  if (needed === undefined) return clickValues(session, link)
  const { reader } = app.database
  const before = app.platform.clock.now() - needed.days_ago * DAY_MS
  const visits = await earlierVisits(reader, link.id, before, MOST_VISITS)
  // Any of them: many orders from one click would raise a flag.
  const visit = visits[randomInt(Math.max(1, visits.length))]
  if (visit) return { click: visit.id, clickAt: visit.created_at, ...(await linkValues(app, link)) }
  return needed.required ? null : clickValues(session, link)
}

export async function linkValues(app: App, link: ShownLink) {
  const { reader } = app.database
  const creator = (await peopleOf(reader, [link.creator_id])).get(link.creator_id)
  const coupon = (await couponCodesOf(reader, [link.id])).get(link.id)
  return {
    ...(coupon !== undefined && { coupon }),
    creatorEmail: creator?.email ?? NO_CLICK,
    productId: link.product_ids?.[0] ?? FIXTURE_PRODUCT_ID,
  }
}

const SERVER_ERRORS = 500
/** What follows a link without a user agent counts as a bot. */
const BROWSER = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }

/** Follows the link over HTTP like a visitor, and reads the tracking reference from the redirect. */
export async function clickValues({ app, caller }: Session, link: ShownLink): Promise<FixtureValues> {
  const { status, location } = await caller.call(`/go/${encodeURIComponent(link.slug)}`, BROWSER)
  if (status >= SERVER_ERRORS) {
    throw new Failure(
      `The service cannot take a click just now (HTTP ${status}). "affiliate doctor" says more where it runs.`,
      { code: 'unavailable' },
    )
  }
  const parameter = app.platform.config.TRACKING_PARAMETER
  const click = location === null ? null : new URL(location).searchParams.get(parameter)
  if (click === null) throw new Failure(untracked(link, status))
  const found = (await linksOfClicks(app.database.reader, app.platform.keys, [click])).get(click)
  if (!found) {
    throw new Failure(
      'The service logged the click, but it is not in this database. Is --database-url the one it uses?',
    )
  }
  return { click, clickAt: found.click.created_at, ...(await linkValues(app, link)) }
}

function untracked({ slug, offer }: ShownLink, status: number): string {
  const own =
    offer.status === 'live'
      ? 'a party is suspended, or the service cannot keep visits just now. "affiliate doctor" says more where it runs.'
      : `its offer is ${offer.status}. Set it live, or name another link with --link.`
  const why = status === 404 ? 'the service does not know it. Is --database-url the database it uses?' : own
  return `Link ${slug} gave no tracking reference (HTTP ${status}): ${why}`
}
