import { sql } from 'kysely'
import { applyToOffer } from '../../applications/applications.service.ts'
import { startExport } from '../../exports/exports.service.ts'
import { sendTestEvent } from '../../notifications/channels/webhooks/deliveries.service.ts'
import { createEndpoint, MAX_ENDPOINTS } from '../../notifications/channels/webhooks/endpoints.service.ts'
import { createOffer } from '../../offers/offers.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import { updateRows } from '../../platform/database/protected-rows.ts'
import type { Platform } from '../../platform/platform.ts'
import { connectStore, MAX_STORES } from '../../stores/stores.service.ts'
import { hashPassword } from '../../users/passwords.ts'
import { authorize } from '../authorization/scene.ts'
import type { TestDialect } from '../testkit/databases.ts'
import { eventually } from '../testkit/eventually.ts'
import { accessOf, addLink, addLiveOffer, addMerchant, OFFER } from '../testkit/listings.ts'
import { measureLoopCpu } from '../testkit/loop-cpu.ts'
import { breachesIn, closeOpenCycle, giveDestination } from '../testkit/marketplace.ts'
import { orderBody, orderHeaders, type StoreAccess } from '../testkit/orders.ts'
import { addApiKey, addUser } from '../testkit/people.ts'
import { columnsOf } from '../testkit/rows.ts'
import { call, openServiceBed, type ServiceBed } from '../testkit/service-bed.ts'

export const ID_WORDS = [
  'offers',
  'applications',
  'stores',
  'sales',
  'users',
  'flagged',
  'jobs',
  'webhook-endpoints',
  'webhook-deliveries',
] as const
export type IdWord = (typeof ID_WORDS)[number]
type IdsOf = Record<IdWord, string[]>

/** What the requests can hit. */
export type Targets = Awaited<ReturnType<typeof openFuzzedService>>['targets']

export interface Aftermath {
  /** CPU milliseconds of the loop's thread in its longest turn. */
  longestStall: number
  /** How many events came in. */
  events: number
  breaches: string[]
}

const PASSWORD = 'a long passphrase'
const SPARES = 200
const OF_EACH = 25

/** Opens the whole service in this process, with its world: everything is there more than once, so that using it up takes a while. */
async function openFuzzedService(dialect: TestDialect) {
  const bed = await openServiceBed(dialect, { LOG_LEVEL: 'error' })
  const { platform, processorSignature } = bed.service.app
  const merchant = await addMerchant(platform, 'merchant')
  const creator = await addUser(platform, 'creator')
  const admin = await addUser(platform, 'admin')
  const store = accessOf(merchant)
  await giveDestination(platform, creator.userId)
  const { idsOf, slugs, clicks } = await addThings(platform, merchant, creator)
  await sellOnce(bed, store, clicks)
  // Closed early, so that there is an invoice to confirm; the sales to come go into the next cycle.
  const cycle = await closeOpenCycle(platform, { merchantId: merchant.userId })
  for (const user of [merchant, creator, admin]) {
    const request = { resource: 'sales', format: 'csv', from: null, to: null } as const
    for (let n = 0; n < 3; n += 1) idsOf.jobs.push((await startExport(platform, user, request)).id)
  }
  idsOf.sales.push(...(await idsIn(platform, 'sales')))
  idsOf.flagged.push(...(await idsIn(platform, 'flags')))
  const { emails, spare } = await addSpares(platform)
  const password_hash = await hashPassword(PASSWORD)
  await platform.database.transaction((tx) => updateRows(tx, 'users', sql`true`, { password_hash }))
  const tokenOf = async ({ userId }: Actor) => (await authorize(platform, userId)).authorization
  const keys: string[] = []
  for (const { userId } of [merchant, creator]) {
    for (const scope of ['read', 'write'] as const) {
      keys.push(`Bearer ${(await addApiKey(platform, userId, scope)).key}`)
    }
  }
  const targets = {
    url: bed.url,
    /** `Authorization` headers that stay good: what can end a session is called with those of `spare`. */
    tokens: {
      merchant: await tokenOf(merchant),
      creator: await tokenOf(creator),
      admin: await tokenOf(admin),
    },
    spare,
    /** The same of API keys. */
    keys,
    /** Ids of what may be changed, suspended or removed, by the word that stands before an id in the paths. */
    idsOf,
    /** All of them together. */
    ids: [...Object.values(idsOf).flat(), cycle],
    slugs,
    clicks,
    password: PASSWORD,
    emails,
    store,
    processorSecret: processorSignature.secrets[0] ?? '',
  }
  return { bed, targets }
}

/** Offers in several states with applications and links, stores and people, so many of each. */
async function addThings(platform: Platform, merchant: Actor, creator: Actor) {
  const idsOf = Object.fromEntries(ID_WORDS.map((word) => [word, []])) as unknown as IdsOf
  const clicks: string[] = []
  const slugs: string[] = []
  const application = { message: null, promotion_url: null }
  const vetted = { ...OFFER, commission_rate: 4500 }
  for (let n = 0; n < OF_EACH; n += 1) {
    const live = () => addLiveOffer(platform, merchant)
    const [linked, open, free] = [await live(), await live(), await live()]
    const draft = await createOffer(platform, merchant.userId, vetted)
    idsOf.offers.push(linked.id, open.id, free.id, draft.id)
    const link = await addLink(platform, merchant, creator, linked.id)
    slugs.push(link.slug)
    clicks.push(await addClick(platform, link.id))
    const { userId } = await addUser(platform, 'creator')
    idsOf.users.push(userId, (await addUser(platform, 'merchant')).userId)
    idsOf.applications.push((await applyToOffer(platform, userId, open.id, application)).id)
    // Leaves room below the quota for stores that the fuzz connects.
    if (n < MAX_STORES / 2) idsOf.stores.push(await addSpareStore(platform, merchant))
  }
  for (const owner of [merchant, creator]) await addEndpoints(platform, owner, idsOf)
  return { idsOf, clicks, slugs }
}

/** Endpoints at a closed port of this machine, with a delivery each; leaves room below the quota. */
async function addEndpoints(platform: Platform, owner: Actor, idsOf: IdsOf): Promise<void> {
  const endpoint = { url: 'http://127.0.0.1:8009/', events: ['sale.accepted'], description: '' }
  for (let n = 0; n < MAX_ENDPOINTS / 2; n += 1) {
    const { id } = await createEndpoint(platform, owner, endpoint)
    idsOf['webhook-endpoints'].push(id)
    idsOf['webhook-deliveries'].push((await sendTestEvent(platform, owner.userId, id)).id)
  }
}

async function addSpareStore(platform: Platform, { userId }: Actor): Promise<string> {
  const shop_domain = `s${platform.ids.next()}.myshopify.com`
  return (await connectStore(platform, userId, { shop_domain, webhook_secret: `secret-${shop_domain}` })).id
}

async function addClick(platform: Platform, linkId: string): Promise<string> {
  const id = platform.ids.next()
  const click = { id, link_id: linkId, tracked: 1, kind: 'visit' as const, created_at: platform.clock.now() }
  await platform.database.transaction((tx) => tx.insertInto('clicks').values(click).execute())
  return id
}

/** An order for each click, as the store reports it. */
async function sellOnce(
  { url, service }: ServiceBed,
  store: StoreAccess,
  clicks: readonly string[],
): Promise<void> {
  for (const click of clicks) {
    const raw = Buffer.from(orderBody({ price: 250_000, click, createdAt: Date.now() }))
    const headers = orderHeaders(store, click, raw)
    await call(url, 'POST', '/webhooks/store-sales', { raw, headers })
  }
  await eventually(
    () => idsIn(service.app.platform, 'sales'),
    (sales) => sales.length === clicks.length,
  )
}

async function idsIn(platform: Platform, table: 'sales' | 'flags'): Promise<string[]> {
  return (await columnsOf(platform, table, ['id'])).map(({ id }) => id)
}

/** People whose sessions may end, who may be logged in and whose password may change. */
async function addSpares(platform: Platform) {
  const emails: string[] = []
  const spare: string[] = []
  for (let n = 0; n < SPARES; n += 1) {
    const { userId } = await addUser(platform, n % 2 === 0 ? 'creator' : 'merchant')
    emails.push(`${userId}@example.com`)
    spare.push((await authorize(platform, userId)).authorization)
  }
  return { emails, spare }
}

/** Lets the worker apply what it can apply now, then looks at what it has come to. */
async function takeStock(platform: Platform, longestStall: number): Promise<Aftermath> {
  const untried = () => columnsOf(platform, 'inbound_events', ['id'], { state: 'pending', attempts: 0 })
  await eventually(untried, (events) => events.length === 0)
  const events = await columnsOf(platform, 'inbound_events', ['id'])
  return { longestStall, events: events.length, breaches: await breachesIn(platform) }
}

/** As a process of its own, so that what the fuzzer does holds up nothing here; the parent asks for the end. */
async function serve(dialect: TestDialect): Promise<void> {
  const { bed, targets } = await openFuzzedService(dialect)
  const meter = measureLoopCpu()
  process.on('message', async () => {
    const aftermath = await takeStock(bed.service.app.platform, meter.stop())
    await bed.close()
    process.send?.(aftermath, () => process.disconnect())
  })
  process.send?.(targets)
}

if (import.meta.main && process.send) await serve(process.argv[2] as TestDialect)
