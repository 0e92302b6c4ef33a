import { randomUUID } from 'node:crypto'
import { FIXTURE_PRODUCT_ID, type FixtureValues, fillFixture } from '../../fixtures/fill-fixture.ts'
import type { App } from '../../server/app.ts'
import { linksOfClicks } from '../../server/clicks/clicks.service.ts'
import { resolveLink } from '../../server/links/links.service.ts'
import { signShopifyBody } from '../../server/shopify/signature.ts'
import { listEveryStore, listStores, shopDomainsOf } from '../../server/stores/stores.service.ts'
import { claimsForWebhook, type WebhookClaim } from '../../server/stores/webhook-claims.service.ts'
import { emailsOf } from '../../server/users/users.service.ts'
import { Failure, wrongUsage } from '../failures.ts'
import { readFixture, type StoreFixture } from './fixture-files.ts'
import { changed } from './processor-events.ts'
import type { ServiceCaller } from './service-caller.ts'
import type { ReplayOptions, SignedEvent } from './signed-event.ts'

const NO_CLICK = 'no-click'

/** Orders as the store would send them, filled with one click on the link and signed with the store's secret. */
export async function prepareOrders(
  app: App,
  caller: ServiceCaller,
  wanted: readonly { fixture: StoreFixture; expected: string; deliveryId: string }[],
  options: ReplayOptions,
): Promise<SignedEvent[]> {
  const texts = await Promise.all(wanted.map(({ fixture }) => readFixture('store-sales', fixture.file)))
  const needClick = wanted.filter((_, at) => /\{\{(click|creator_email)\}\}/.test(texts[at] ?? ''))
  if (needClick.length > 0 && options.link === undefined) {
    const names =
      needClick.length > 3
        ? `${needClick.length} of these orders`
        : needClick.map((one) => one.fixture.name).join(', ')
    throw wrongUsage(`A click belongs into ${names}: name an affiliate link with --link SLUG.`)
  }
  const sender = await sendingStore(app, options)
  const values =
    options.link === undefined ? valuesWithoutClick(app) : await clickValues(app, caller, options.link)
  return wanted.map(({ fixture, expected, deliveryId }, at) => {
    const body = Buffer.from(fillFixture(texts[at] ?? '', values))
    return signAsStore(app, sender, { fixture: fixture.name, expected, deliveryId }, body, options)
  })
}

export interface Sender {
  domain: string
  store: WebhookClaim
}

/** The bytes under the store's signature, or what `--corrupt` makes of it. */
export function signAsStore(
  app: App,
  { domain, store }: Sender,
  event: { fixture: string; expected: string | null; deliveryId: string; topic?: string | null },
  body: Buffer,
  { corrupt }: Pick<ReplayOptions, 'corrupt'>,
): SignedEvent {
  if (corrupt === 'timestamp') {
    throw wrongUsage('Stores sign no time, so there is none to break: use --corrupt signature or body.')
  }
  const { topic = 'orders/paid', ...rest } = event
  const secret = corrupt === 'signature' ? randomUUID() : (store.keys[0] ?? '')
  return {
    ...rest,
    path: '/webhooks/store-sales',
    rawBody: corrupt === 'body' ? changed(body) : body,
    delivery: { scope: store.storeId, deliveryId: event.deliveryId },
    headers: {
      ...(topic === null ? {} : { 'x-shopify-topic': topic }),
      'x-shopify-hmac-sha256': signShopifyBody(body, secret),
      'x-shopify-shop-domain': domain,
      'x-shopify-webhook-id': event.deliveryId,
      'x-shopify-event-id': randomUUID(),
      'x-shopify-triggered-at': new Date(app.platform.clock.now()).toISOString(),
      'x-shopify-api-version': '2026-10',
    },
  }
}

/** The store named, else the only one of the link's merchant, else the only one there is. */
export async function sendingStore(
  app: App,
  options: Pick<ReplayOptions, 'store' | 'link'>,
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

/** The id of the one store that can be meant. */
async function onlyStore({ platform }: App, slug: string | undefined): Promise<string> {
  const page = { limit: 100 }
  const { items } =
    slug === undefined
      ? await listEveryStore(platform, page)
      : await listStores(platform, (await resolveLink(platform, slug)).merchantId, page)
  const stores = items.filter((store) => store.removed_at === null)
  const [only] = stores
  if (only !== undefined && stores.length === 1) return only.id
  if (only === undefined)
    throw new Failure('No store is connected that could send it.', { code: 'not_found' })
  const domains = stores.map((store) => store.shop_domain)
  throw new Failure(`There are ${domains.length} stores. Name the one that sends it with --store.`, {
    extra: { candidates: domains },
    lines: domains.map((domain) => `  ${domain}`),
  })
}

function valuesWithoutClick(app: App): FixtureValues {
  const clickAt = app.platform.clock.now()
  return { click: NO_CLICK, clickAt, creatorEmail: NO_CLICK, productId: FIXTURE_PRODUCT_ID }
}

const SERVER_ERRORS = 500

/** Follows the link over HTTP like a visitor, and reads the tracking reference from the redirect. */
export async function clickValues(app: App, caller: ServiceCaller, slug: string): Promise<FixtureValues> {
  const link = await resolveLink(app.platform, slug)
  const { status, location } = await caller.visit(`/go/${encodeURIComponent(link.slug)}`)
  if (status >= SERVER_ERRORS) {
    throw new Failure(
      `The service cannot take a click just now (HTTP ${status}). "affiliate doctor" says more where it runs.`,
      { code: 'unavailable' },
    )
  }
  const { reader } = app.database
  const parameter = app.platform.config.TRACKING_PARAMETER
  const click = location === null ? null : new URL(location).searchParams.get(parameter)
  if (click === null) {
    throw new Failure(
      `Link ${link.slug} gave no tracking reference (HTTP ${status}): its offer is not live, or a party is suspended.`,
    )
  }
  const found = (await linksOfClicks(reader, [click])).get(click)
  if (!found) {
    throw new Failure(
      'The service logged the click, but it is not in this database. Is --database-url the one it uses?',
    )
  }
  const emails = await emailsOf(reader, [link.creatorId])
  return {
    click,
    clickAt: found.click.created_at,
    creatorEmail: emails.get(link.creatorId) ?? NO_CLICK,
    productId: link.productIds?.[0] ?? FIXTURE_PRODUCT_ID,
  }
}
