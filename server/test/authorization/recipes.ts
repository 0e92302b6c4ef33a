import { applyToOffer } from '../../applications/applications.service.ts'
import { startExport } from '../../exports/exports.service.ts'
import { raiseFlag } from '../../flags/flags.service.ts'
import { sendTestEvent } from '../../notifications/channels/webhooks/deliveries.service.ts'
import {
  createEndpoint,
  listEndpoints,
  removeEndpoint,
} from '../../notifications/channels/webhooks/endpoints.service.ts'
import { createOffer } from '../../offers/offers.service.ts'
import type { Actor, SessionActor } from '../../platform/api/procedure.ts'
import { deleteRows, insertRows } from '../../platform/database/protected-rows.ts'
import type { Platform } from '../../platform/platform.ts'
import { recordOrders } from '../../sales/sales.service.ts'
import { readOrderFacts } from '../../shopify/order-facts.ts'
import { removeStore } from '../../stores/remove-store.service.ts'
import { connectStore, listStores } from '../../stores/stores.service.ts'
import { hashPassword } from '../../users/passwords.ts'
import { confirmTotp, startTotp } from '../../users/second-factor.service.ts'
import { createToken, markSessionFresh } from '../../users/sessions.service.ts'
import { codeOf } from '../testkit/authenticator.ts'
import { drainExports } from '../testkit/export-world.ts'
import { addLink, addLiveOffer, OFFER } from '../testkit/listings.ts'
import { orderBody } from '../testkit/orders.ts'
import { addApiKey, addUser, changeUser, setSuspended } from '../testkit/people.ts'
import { rowOf } from '../testkit/rows.ts'
import { HOUR } from '../testkit/testbed.ts'
import type { Input } from './calls.ts'
import { PROCEDURE_CELLS } from './matrix.ts'
import { authorize, type Scene, type Tenant } from './scene.ts'

export interface Occasion {
  scene: Scene
  tenant: Tenant
  /** Who calls. */
  me: SessionActor
}

/** Makes what a procedure needs to find, and the input with which its rightful caller succeeds. */
type Recipe = (occasion: Occasion) => Input | Promise<Input>

const PASSWORD = 'a long passphrase'
const NEW_PASSWORD = 'another passphrase'
const SALES = { resource: 'sales', format: 'csv', from: null, to: null } as const

const ofDraft =
  (fields: Input = {}): Recipe =>
  async ({ scene, tenant }) => ({ id: await freshDraft(scene.platform, tenant), ...fields })
const ofApplication =
  (fields: Input = {}): Recipe =>
  async ({ scene, tenant }) => ({ id: await freshApplication(scene.platform, tenant), ...fields })
const ofEndpoint =
  (fields: Input = {}): Recipe =>
  async ({ scene, me }) => ({ id: await freshEndpoint(scene.platform, me), ...fields })
const ofStore: Recipe = async ({ scene, tenant }) => ({ id: await freshStore(scene.platform, tenant) })
const ofCreator: Recipe = ({ tenant }) => ({ id: tenant.creator.userId })
const startingExport =
  (resource: string): Recipe =>
  async ({ scene }) => {
    await drainExports(scene.platform)
    return { resource, format: 'csv' }
  }

/** By a procedure's name, with a plus and a word for a further way to call it. What is not here needs no input. */
const RECIPES: Record<string, Recipe> = {
  'auth.register': ({ scene }) => ({
    ...{ email: `${scene.platform.ids.next()}@example.pk`, password: PASSWORD },
    ...{ role: 'creator', display_name: 'Newcomer' },
  }),
  'auth.login': async ({ scene, tenant }) => {
    await givePassword(scene.platform, tenant.creator)
    return { email: `${tenant.creator.userId}@example.com`, password: PASSWORD }
  },
  'auth.requestPasswordReset': ({ tenant }) => ({ email: `${tenant.creator.userId}@example.com` }),
  'auth.resetPassword': async ({ scene }) => {
    return { token: await mailedToken(scene.platform, 'password_reset'), new_password: NEW_PASSWORD }
  },
  'auth.verifyEmail': async ({ scene }) => ({ token: await mailedToken(scene.platform, 'verify_email') }),
  'auth.resendVerification': async ({ scene, me }) => {
    // Few are sent to one address.
    await scene.platform.database.transaction((tx) =>
      tx.deleteFrom('mails').where('user_id', '=', me.userId).execute(),
    )
    return {}
  },
  'auth.changePassword': async ({ scene, me }) => {
    await givePassword(scene.platform, me)
    return { current_password: PASSWORD, new_password: NEW_PASSWORD }
  },
  'auth.endSession': async ({ scene, me }) => ({
    id: (await authorize(scene.platform, me.userId)).sessionId,
  }),
  'auth.startTotp': async ({ scene, me }) => {
    await removeSecondFactor(scene.platform, me)
    return {}
  },
  'auth.confirmTotp': async ({ scene, me }) => {
    await removeSecondFactor(scene.platform, me)
    const { secret } = await startTotp(scene.platform, me.userId)
    return { code: codeOf(secret, scene.platform.clock) }
  },
  'auth.renewRecoveryCodes': ({ scene, me }) => withSecondFactor(scene.platform, me),
  'auth.disableTotp': async ({ scene: { platform }, me }) => {
    const code = await withSecondFactor(platform, me)
    await platform.database.transaction((tx) => markSessionFresh(platform, tx, me))
    return code
  },
  'auth.stepUp': async ({ scene, me }) => {
    await givePassword(scene.platform, me)
    return { password: PASSWORD }
  },
  'auth.createApiKey': async ({ scene, me }) => {
    await removeSecondFactor(scene.platform, me)
    return { name: 'Order desk', scope: 'read', expires_in_days: 30 }
  },
  'auth.deleteApiKey': async ({ scene, me }) => ({
    id: (await addApiKey(scene.platform, me.userId, 'write')).id,
  }),
  'users.updateNotifications': () => ({ email: {} }),
  'users.updateMe': () => ({ display_name: 'Renamed' }),

  'stores.connect': ({ scene }) => storeFields(scene.platform),
  'stores.get': ofStore,
  'stores.rotateSecret': async (occasion) => ({
    ...(await ofStore(occasion)),
    webhook_secret: `secret-${occasion.scene.platform.ids.next()}`,
  }),
  'stores.remove': ofStore,

  'offers.list+mine': () => ({ mine: true }),
  'offers.get+live': ({ tenant }) => ({ id: tenant.link.offer_id }),
  'offers.get+draft': ofDraft(),
  'offers.create': () => ({
    ...{ title: 'Brass lamp', product_url: 'https://lamps.pk/products/brass' },
    ...{ category: 'Home', niche: 'Lamps', commission_rate: 10 },
  }),
  'offers.update': ofDraft({ title: 'Another title' }),
  'offers.setStatus': ofDraft({ status: 'live' }),

  'applications.apply': async ({ scene, tenant }) => ({ id: await freshLiveOffer(scene.platform, tenant) }),
  'applications.listForOffer': ({ tenant }) => ({ id: tenant.link.offer_id }),
  'applications.decide': ofApplication({ decision: 'approve' }),
  'applications.withdraw': ofApplication(),

  'links.resolve': ({ tenant }) => ({ slug: tenant.link.slug }),
  'links.setCoupon': ({ tenant }) => ({ slug: tenant.link.slug, coupon_code: 'SANA10' }),
  'links.setCoupon+end': endOfLink,
  'links.end': endOfLink,

  'sales.get': async ({ scene, tenant }) => ({ id: await freshSale(scene, tenant) }),
  'sales.requestCredit': async ({ scene, tenant }) => {
    return { id: await freshSale(scene, tenant), amount: '10.00', reason: 'The buyer sent it back.' }
  },

  'admin.resolveFlag': async ({ scene }) => ({ id: await freshFlag(scene.platform), note: 'Looked at it.' }),
  'admin.vetOffer': ofDraft({ decision: 'approve' }),
  'admin.previewSuspension': ofCreator,
  'admin.suspendUser': async ({ scene }) => ({ id: (await addUser(scene.platform, 'creator')).userId }),
  'admin.reinstateUser': async ({ scene }) => {
    const { userId } = await addUser(scene.platform, 'creator')
    await setSuspended(scene.platform, userId, true)
    return { id: userId }
  },

  'jobs.startExport': startingExport('sales'),
  'jobs.startExport+billing': startingExport('billing_cycles'),
  'jobs.get': async ({ scene, me }) => ({ id: await freshJob(scene.platform, me) }),

  'summaries.series': () => ({ by: 'day' }),

  'webhooks.create': async ({ scene, me }) => {
    await removeEndpoints(scene.platform, me)
    return { url: ENDPOINT.url, events: ['sale.accepted'] }
  },
  'webhooks.get': ofEndpoint(),
  'webhooks.update': ofEndpoint({ description: 'Order desk' }),
  'webhooks.remove': ofEndpoint(),
  'webhooks.rotate': ofEndpoint(),
  'webhooks.deliveries': ofEndpoint(),
  'webhooks.test': ofEndpoint(),
  'webhooks.retry': async ({ scene, me }) => ({ id: (await freshDelivery(scene.platform, me)).id }),
}

/** The ways to call a procedure that have an input of their own, as rows of the matrix. */
export const RECIPE_ROWS = Object.keys(RECIPES)

/** The input for a row of the matrix, with what it needs to find. */
export async function inputFor(row: string, occasion: Occasion): Promise<Input> {
  return (await RECIPES[row]?.(occasion)) ?? {}
}

/** The rows of the matrix for a procedure. */
export function rowsFor(name: string): string[] {
  return [...PROCEDURE_CELLS.keys()].filter((row) => procedureOf(row) === name)
}

const ENDPOINT = { url: 'https://shop.example.com/hooks', events: ['sale.accepted'] }

/** The name of the procedure that a recipe is for. */
export function procedureOf(recipe: string): string {
  return recipe.split('+', 1)[0] ?? recipe
}

/** The token of a link that was mailed to a new account. */
async function mailedToken(platform: Platform, purpose: 'verify_email' | 'password_reset'): Promise<string> {
  const { userId: user_id } = await addUser(platform, 'creator')
  const { token, hash } = createToken()
  const created_at = platform.clock.now()
  const row = { user_id, purpose, token_hash: hash, created_at, expires_at: created_at + HOUR }
  await platform.database.transaction((tx) => insertRows(tx, 'account_tokens', [row]))
  return token
}

/** Turns it on, and returns an input with its next code. */
async function withSecondFactor(platform: Platform, me: SessionActor): Promise<Input> {
  await removeSecondFactor(platform, me)
  const { secret } = await startTotp(platform, me.userId)
  await confirmTotp(platform, me.userId, codeOf(secret, platform.clock), me.userId, me.sessionId)
  return { code: codeOf(secret, platform.clock, 1) }
}

let passwordHash: Promise<string> | undefined

/** What an earlier call has left of it; sessions stay. */
async function removeSecondFactor({ database }: Platform, { userId }: Actor): Promise<void> {
  await database.transaction(async (tx) => {
    await deleteRows(tx, 'recovery_codes', { user_id: userId })
    await deleteRows(tx, 'second_factors', { user_id: userId })
  })
}

async function givePassword(platform: Platform, me: Actor): Promise<void> {
  await removeSecondFactor(platform, me)
  passwordHash ??= hashPassword(PASSWORD)
  await changeUser(platform, me.userId, { password_hash: await passwordHash })
}

function storeFields({ ids }: Platform) {
  const id = ids.next()
  return { shop_domain: `s${id}.myshopify.com`, webhook_secret: `secret-${id}` }
}

/** Takes the place of other spare stores, since an account may have only so many. */
async function freshStore(platform: Platform, { merchant, shop }: Tenant): Promise<string> {
  const { items } = await listStores(platform, merchant.userId, { limit: 100 })
  for (const { id } of items) if (id !== shop.storeId) await removeStore(platform, merchant.userId, id)
  return (await connectStore(platform, merchant.userId, storeFields(platform))).id
}

export async function freshDraft(platform: Platform, { merchant }: Tenant, title?: string): Promise<string> {
  return (await createOffer(platform, merchant.userId, { ...OFFER, ...(title && { title }) })).id
}

async function freshLiveOffer(platform: Platform, { merchant }: Tenant): Promise<string> {
  return (await addLiveOffer(platform, merchant)).id
}

export async function freshApplication(
  platform: Platform,
  tenant: Tenant,
  message: string | null = null,
): Promise<string> {
  const offerId = await freshLiveOffer(platform, tenant)
  const application = { message, promotion_url: null }
  return (await applyToOffer(platform, tenant.creator.userId, offerId, application)).id
}

async function endOfLink({ scene: { platform }, tenant }: Occasion): Promise<Input> {
  // Another creator: an account may apply only so often.
  const creator = await addUser(platform, 'creator')
  const { slug } = await addLink(platform, tenant.merchant, creator, tenant.link.offer_id)
  return { slug, status: 'ended' }
}

/** An accepted sale of the tenant's shop that the tenant's creator has brought. */
export async function freshSale({ market, platform }: Scene, { shop, link }: Tenant): Promise<string> {
  const click = await market.click(link)
  const body = orderBody({ price: 100_000, click, createdAt: platform.clock.now() })
  const order = readOrderFacts(body, platform.config.TRACKING_PARAMETER)
  const { storeId, merchantId } = shop
  const reported = { eventId: platform.ids.next(), storeId, merchantId, order }
  await platform.database.transaction((tx) => recordOrders(platform, tx, [reported]))
  return (await rowOf(platform, 'sales', { event_id: reported.eventId })).id
}

async function removeEndpoints(platform: Platform, owner: Actor): Promise<void> {
  const { items } = await listEndpoints(platform, owner.userId, { limit: 100 })
  for (const { id } of items) await removeEndpoint(platform, owner, id)
}

/** Takes the place of the account's other endpoints, since it may have only so many. Admins have none: a merchant's stands in. */
async function freshEndpoint(platform: Platform, me: Actor, description = ''): Promise<string> {
  const owner = me.role === 'admin' ? await addUser(platform, 'merchant') : me
  await removeEndpoints(platform, owner)
  return (await createEndpoint(platform, owner, { ...ENDPOINT, description })).id
}

/** A test event for a fresh endpoint. */
export async function freshDelivery(platform: Platform, me: Actor, description?: string) {
  const owner = me.role === 'admin' ? await addUser(platform, 'merchant') : me
  const endpointId = await freshEndpoint(platform, owner, description)
  return { id: (await sendTestEvent(platform, owner.userId, endpointId)).id, endpointId }
}

export async function freshFlag(platform: Platform): Promise<string> {
  const subjectId = platform.ids.next()
  await platform.database.transaction((tx) =>
    raiseFlag(platform, tx, {
      ...{ kind: 'self_purchase', subjectType: 'user', subjectId },
      ...{ summary: 'To be looked at.', evidence: {} },
    }),
  )
  return (await rowOf(platform, 'flags', { subject_id: subjectId })).id
}

/** A finished export of this user, with its file. */
export async function freshJob(platform: Platform, user: Actor): Promise<string> {
  const { id } = await startExport(platform, user, SALES)
  await drainExports(platform)
  return id
}
