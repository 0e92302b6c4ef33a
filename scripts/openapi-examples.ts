import crypto, { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { z } from 'zod'
import { ADMIN, BILLING_ACCOUNT, COUPON_CODE, CREATORS, MERCHANT, OFFERS, SHOP_DOMAIN } from '../cli/story.ts'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../fixtures/fill-fixture.ts'
import { closeDueCycles } from '../server/billing/close-cycle.service.ts'
import { grantCredit } from '../server/billing/credits.service.ts'
import { exportStorage } from '../server/exports/exports.service.ts'
import { runNextExport } from '../server/exports/run-export.service.ts'
import { OPERATOR } from '../server/flags/audit.service.ts'
import { inputShapeOf, type JsonSchema } from '../server/http/rest-input.ts'
import { appRouter } from '../server/http/router.ts'
import { runPayouts } from '../server/payouts/payout-run.service.ts'
import { type ProcedureRecord, proceduresOf } from '../server/platform/api/procedure.ts'
import { createIds } from '../server/platform/ids.ts'
import { signShopifyBody } from '../server/shopify/signature.ts'
import { codeOf } from '../server/test/testkit/authenticator.ts'
import { openMarketplace } from '../server/test/testkit/marketplace.ts'
import { serveTestbed } from '../server/test/testkit/web.ts'
import { openWebhookReceiver } from '../server/test/testkit/webhook-receiver.ts'
import { createAdmin } from '../server/users/users.service.ts'
import { formatMoney, parseMoney } from '../shared/money.ts'

/*
 * Writes the examples of the API reference: `npm run openapi:examples`. They are what a marketplace answers on its way from the first
 * registration to a paid payout, under a clock that stands still and with the same ids and secrets in every run.
 */

const FILE = new URL('../server/http/openapi/examples.json', import.meta.url)
const BASE = 'https://market.example.pk'
const ENDPOINT_URL = 'https://chenab-lawn.example.pk/affiliate-events'
const AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const NOVEMBER = { from: '2026-11-01T00:00:00+05:00', to: '2026-12-01T00:00:00+05:00' }
const STORE_SECRET = 'shpss_5c1d0f8a7b3e4926'
const PASSWORDS = {
  merchant: 'nine copper kettles',
  creator: 'seven quiet rivers',
  admin: 'four patient lanterns',
}

// biome-ignore lint/suspicious/noExplicitAny: the answer of any route
type Answer = any

/** Random bytes follow from how many calls for as many there were before. */
function fixRandomness(): void {
  const calls = new Map<number, number>()
  const bytes = (length: number) => {
    const call = calls.get(length) ?? 0
    calls.set(length, call + 1)
    return createHash('shake256', { outputLength: length }).update(`example ${call}`).digest()
  }
  Object.assign(crypto, {
    randomBytes: bytes,
    randomFillSync(target: Uint8Array) {
      target.set(bytes(target.length))
      return target
    },
  })
  syncBuiltinESMExports()
}

/** What the story's calls sent and were answered, as examples. */
class Recorder {
  /** By the resource before `:id` in a path. */
  readonly ids: Record<string, string> = {}
  /** Of paths and queries, by name. */
  readonly parameters: Record<string, unknown> = {}
  /** By operation. */
  readonly bodies: Record<string, unknown> = {}
  /** By operation, as a media type has them. */
  readonly responses: Record<string, { example?: unknown; examples?: Record<string, { value: unknown }> }> =
    {}
  /** By the name of the schema. */
  readonly components: Record<string, unknown> = {}

  record(procedure: ProcedureRecord, input: Record<string, unknown>, answer: Answer, caller?: string): void {
    const { name, meta } = procedure
    if (!meta.rest) return
    const { fields } = inputShapeOf(procedure, meta.rest)
    const body: Record<string, unknown> = {}
    for (const [field, value] of Object.entries(input)) {
      const { source, schema } = fields.get(field) ?? {}
      if (source === 'body') body[field] = value
      else if (field === 'id') this.ids[/([\w-]+)\/:id/.exec(meta.rest.path)?.[1] ?? ''] = String(value)
      else if (schema && !schema.enum && schema.default === undefined) this.parameters[field] = value
    }
    if (Object.keys(body).length > 0) this.bodies[name] = body
    const output = procedure.output
    if (meta.rest.status === 204 || !(output instanceof z.ZodType)) return
    this.responses[name] = caller
      ? { examples: { ...this.responses[name]?.examples, [caller]: { value: answer } } }
      : { example: answer }
    const { $defs = {}, ...schema } = z.toJSONSchema(output, { io: 'output' }) as JsonSchema
    this.#keepComponents(schema, answer, $defs)
  }

  /** The last value of a component is its example. */
  #keepComponents(schema: JsonSchema, value: unknown, $defs: Record<string, JsonSchema>): void {
    if (value === null || typeof value !== 'object') return
    const component = schema.$ref?.split('/').at(-1)
    if (component !== undefined) {
      this.#keepComponents({ ...$defs[component], id: component }, value, $defs)
      return
    }
    if (Array.isArray(value)) {
      for (const item of value) this.#keepComponents(schema.items ?? {}, item, $defs)
      return
    }
    const fields = Object.entries(schema.properties ?? {})
    const has = value as Record<string, unknown>
    if (fields.some(([name, field]) => field.const !== undefined && field.const !== has[name])) return
    if (typeof schema.id === 'string') this.components[schema.id] = value
    for (const [name, field] of fields) this.#keepComponents(field, has[name], $defs)
    for (const option of schema.anyOf ?? []) this.#keepComponents(option, value, $defs)
  }
}

const paisa = (amount: string) => parseMoney(amount) ?? 0
const uuid = (number: number) => `b54557e4-bdd9-4b37-8a5f-bf7d70bcd10${number}`

/** The fields of a fixture's order that the service reads, filled for a click. */
function orderFrom(fixture: string, click: string, clickAt: number, changes: object): object {
  const text = readFileSync(new URL(`../fixtures/store-sales/${fixture}.json`, import.meta.url), 'utf8')
  const values = { click, clickAt, creatorEmail: CREATORS[0].email, productId: FIXTURE_PRODUCT_ID }
  const order = JSON.parse(fillFixture(text, values)) as Answer
  return {
    id: order.id,
    name: order.name,
    created_at: order.created_at,
    currency: order.currency,
    financial_status: order.financial_status,
    cancelled_at: order.cancelled_at,
    test: order.test,
    taxes_included: order.taxes_included,
    email: order.email,
    landing_site: order.landing_site,
    note_attributes: order.note_attributes,
    discount_codes: order.discount_codes,
    line_items: order.line_items.map((line: Answer) => ({
      product_id: line.product_id,
      title: line.title,
      gift_card: line.gift_card,
      quantity: line.quantity,
      price: line.price,
      discount_allocations: line.discount_allocations.map(({ amount }: Answer) => ({ amount })),
      tax_lines: line.tax_lines,
    })),
    ...changes,
  }
}

async function main(): Promise<void> {
  fixRandomness()
  const market = await openMarketplace('sqlite', { TRUST_PROXY: '127.0.0.1' }, createIds)
  const platform = Object.assign(market.platform, { publicBaseUrl: BASE })
  const { clock, processor } = market
  processor.nextId = (kind) => (kind === 'inv' ? 'inv_7Q2mX4kdR9' : 'po_9Vb3NcY6eK')
  clock.set('2026-10-05T06:12:40.000Z')
  const web = await serveTestbed({ ...market.bed, platform })
  const receiver = await openWebhookReceiver()
  const recorder = new Recorder()
  const procedures = new Map(proceduresOf(appRouter).map((procedure) => [procedure.name, procedure]))
  const headers = { 'x-forwarded-for': '203.0.113.24', 'user-agent': AGENT }

  let requestId = ''

  async function ask(method: string, path: string, request: Parameters<typeof web.ask>[2] = {}) {
    clock.pass(1318)
    const answer = await web.ask(method, path, { ...request, headers: { ...headers, ...request.headers } })
    requestId ||= answer.headers.get('x-request-id') ?? ''
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer
  }

  /** Calls an operation over REST. `caller` names the example if the operation has several. */
  async function call(
    name: string,
    token: string | undefined,
    input: Record<string, unknown> = {},
    caller?: string,
  ): Promise<Answer> {
    const procedure = procedures.get(name)
    const rest = procedure?.meta.rest
    if (!procedure || !rest) throw new Error(`there is no operation ${name}`)
    const { fields } = inputShapeOf(procedure, rest)
    const of = (source: string) =>
      Object.entries(input).filter(([field]) => fields.get(field)?.source === source)
    const path = rest.path.replace(/:(\w+)/g, (_, field) => String(input[field]))
    const query = new URLSearchParams(
      Object.fromEntries(of('query').map(([field, value]) => [field, String(value)])),
    )
    const body = of('body').length > 0 ? { body: Object.fromEntries(of('body')) } : {}
    const answer = await ask(rest.method, `${path}?${query}`, { ...(token && { token }), ...body })
    recorder.record(procedure, input, answer.body, caller)
    return answer.body
  }

  async function register(role: 'merchant' | 'creator', person: { email: string; displayName: string }) {
    const { email, displayName: display_name } = person
    const { token } = await call('auth.register', undefined, {
      email,
      password: PASSWORDS[role],
      role,
      display_name,
    })
    return token as string
  }

  async function logIn(email: string, password: string): Promise<string> {
    return (await call('auth.login', undefined, { email, password })).token
  }

  /** Follows the link, and returns where it leads with the click's id. */
  async function visit(slug: string): Promise<{ url: string; click: string }> {
    const url = (await ask('GET', `/go/${slug}`)).headers.get('location') ?? ''
    return { url, click: new URL(url).searchParams.get('aff_ref') ?? '' }
  }

  async function report(order: object, delivery: string, topic = 'orders/paid'): Promise<Answer> {
    const body = Buffer.from(JSON.stringify(order))
    const answer = await ask('POST', '/webhooks/store-sales', {
      body: order,
      headers: {
        'x-shopify-shop-domain': SHOP_DOMAIN,
        'x-shopify-topic': topic,
        'x-shopify-webhook-id': delivery,
        'x-shopify-hmac-sha256': signShopifyBody(body, STORE_SECRET),
      },
    })
    clock.pass(870)
    await market.drainUntilIdle()
    return answer
  }

  // October: the people, the store, the offers and the link.
  await createAdmin(platform, ADMIN.email, PASSWORDS.admin, ADMIN.displayName)
  const admin = await logIn(ADMIN.email, PASSWORDS.admin)
  const merchant = await register('merchant', MERCHANT)
  await call('users.updateMe', merchant, { billing_account: BILLING_ACCOUNT })
  const store = await call('stores.connect', merchant, {
    shop_domain: SHOP_DOMAIN,
    webhook_secret: STORE_SECRET,
  })
  const endpoint = await call('webhooks.create', merchant, {
    url: receiver.url,
    events: ['sale.accepted', 'billing_cycle.closed'],
    description: 'Order desk',
  })
  const [suit, , khussa] = OFFERS
  const draft = await call('offers.create', merchant, { ...khussa, commission_rate: 35 })
  await call('admin.vetOffer', admin, { id: draft.id, decision: 'approve', commission_rate: 35 })
  const offer = await call('offers.create', merchant, {
    ...suit,
    description: 'Unstitched lawn with a chiffon dupatta. Delivery all over Pakistan in 3 to 5 days.',
    image_url: `https://${SHOP_DOMAIN}/images/embroidered-lawn-suit.jpg`,
  })
  await call('offers.update', merchant, { id: offer.id, title: offer.title, commission_rate: 12.5 })
  await call('offers.setStatus', merchant, { id: offer.id, status: 'live' })

  clock.set('2026-10-06T14:03:22.000Z')
  const creator = await register('creator', CREATORS[0])
  await call('auth.requestPasswordReset', undefined, { email: CREATORS[0].email })
  await call('offers.list', undefined, {
    q: 'embroidered lawn',
    category: offer.category,
    niche: offer.niche,
    merchant_id: offer.merchant.id,
    commission_min: 10,
    commission_max: 20,
  })
  await call('offers.categories', undefined)
  await call('offers.get', undefined, { id: offer.id })
  const application = await call('applications.apply', creator, {
    id: offer.id,
    message: 'I review lawn collections for 48,000 followers and would show this suit before Eid.',
    promotion_url: 'https://reels.example.pk/sana.mirza',
  })
  await call('applications.listForOffer', merchant, { id: offer.id })
  clock.set('2026-10-07T05:48:30.000Z')
  const approved = await call('applications.decide', merchant, { id: application.id, decision: 'approve' })
  const { slug } = approved.affiliate_link
  await call('links.setCoupon', merchant, { slug, coupon_code: COUPON_CODE })
  await call('applications.list', creator)
  await call('links.resolve', creator, { slug }, 'party')
  await call('links.resolve', undefined, { slug }, 'anyone')
  const destination = { iban: CREATORS[0].iban, account_title: 'SANA MIRZA' }
  await call('users.updateMe', creator, {
    display_name: CREATORS[0].displayName,
    payout_destination: destination,
    current_password: PASSWORDS.creator,
  })
  await call('users.notifications', merchant)
  await call('users.updateNotifications', creator, {
    email: { 'application.decided': true, 'payout.paid': false },
  })

  // November: visits and orders.
  const delivery = 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043'
  clock.set('2026-11-18T15:02:11.000Z')
  const { url: tracked, click } = await visit(slug)
  const order = orderFrom('several-lines-with-discounts', click, clock.now(), {
    id: 6145939901377,
    name: '#1001',
  })
  clock.set('2026-11-18T15:48:05.000Z')
  await report(order, delivery)
  for (const [day, fixture] of ['path-landing-site', 'taxes-included', 'unknown-reference'].entries()) {
    clock.set(`2026-11-${20 + day}T09:30:00.000Z`)
    const next = await visit(slug)
    const from = { id: 6145939901400 + day, name: `#${1002 + day}` }
    const clickAt = clock.now()
    clock.pass(7_200_000)
    await report(orderFrom(fixture, next.click, clickAt, from), uuid(day))
  }
  const owner = await logIn(MERCHANT.email, PASSWORDS.merchant)
  let sana = await logIn(CREATORS[0].email, PASSWORDS.creator)
  const sales = { acceptance_status: 'accepted', offer_id: offer.id, ...NOVEMBER }
  const page = await call('sales.list', owner, { ...sales, limit: 1 })
  await call('sales.list', owner, { ...sales, cursor: page.next_cursor })
  const [sale] = (
    await call('sales.list', owner, {
      ...sales,
      creator_id: application.creator.id,
      affiliate_link_slug: slug,
      store_id: store.id,
      order_id: '6145939901377',
      order_name: '#1001',
    })
  ).items

  // Exports, an endpoint for webhooks, a credit.
  clock.set('2026-11-23T05:10:02.000Z')
  const files: Record<string, string> = {}
  for (const format of ['ndjson', 'csv']) {
    const job = await call('jobs.startExport', owner, { resource: 'sales', format, ...NOVEMBER })
    clock.pass(3102)
    await runNextExport(platform, await exportStorage(platform.config), new AbortController().signal)
    await call('jobs.get', owner, { id: job.id })
    const authorization = `Bearer ${owner}`
    files[format] = await (
      await fetch(`${web.base}/jobs/${job.id}/file`, { headers: { authorization } })
    ).text()
  }
  await call('jobs.list', owner)
  const { id } = endpoint
  await call('webhooks.update', owner, {
    id,
    events: ['sale.accepted', 'sale.rejected', 'billing_cycle.closed'],
  })
  receiver.answer = (response) => response.writeHead(503).end()
  const test = await call('webhooks.test', owner, { id })
  await market.drainUntilIdle()
  receiver.answer = (response) => response.writeHead(204).end()
  await call('webhooks.retry', owner, { id: test.id })
  await market.drainUntilIdle()
  await call('webhooks.deliveries', owner, { id })
  await call('webhooks.rotate', owner, { id })
  await call('webhooks.list', owner)
  await call('webhooks.get', owner, { id })
  const amount = formatMoney(paisa(sale.commission) + paisa(sale.platform_fee))
  const wish = { id: sale.id, amount, reason: 'The customer returned both suits.' }
  const declined = await call('sales.requestCredit', owner, wish)
  const operator = await logIn(ADMIN.email, PASSWORDS.admin)
  await call('admin.listFlagged', operator)
  const waiting = 'The parcel has not come back yet.'
  await call('admin.resolveFlag', operator, { id: declined.flag_id, note: waiting })
  const request = await call('sales.requestCredit', owner, wish)
  await grantCredit(platform, {
    merchantId: offer.merchant.id,
    amount: 30_000,
    reference: 'RMA-17',
    reason: 'Half of it: the customer kept one suit.',
    actor: OPERATOR,
    requestId: request.flag_id,
  })

  // December: the cycle, its payment and the payout.
  clock.set('2026-11-30T19:05:00.000Z')
  await closeDueCycles(platform)
  await market.drainUntilIdle()
  clock.set('2026-12-02T09:41:27.000Z')
  const [charged] = (await call('billing.listCycles', owner)).items
  const payment = {
    type: 'billing.payment_confirmed',
    data: {
      invoice_id: charged.processor_invoice_id,
      payment_reference: 'pay_4Hs81LwzT0',
      amount: charged.amount_due,
      currency: charged.currency,
    },
  }
  await market.processorSends(payment)
  await market.drainUntilIdle()
  clock.set('2026-12-02T09:45:00.000Z')
  await runPayouts(platform, processor)
  await market.drainUntilIdle()
  clock.set('2026-12-02T11:20:48.000Z')
  const [sent] = (await call('payouts.list', sana)).items
  const paid = {
    type: 'payout.confirmed',
    data: {
      payout_id: sent.processor_payout_id,
      reference: sent.id,
      amount: sent.amount,
      currency: sent.currency,
    },
  }
  await market.processorSends(paid)
  await market.drainUntilIdle()
  clock.set('2026-12-05T15:00:00.000Z')
  const late = await visit(slug)
  await report(
    orderFrom('path-landing-site', late.click, clock.now(), { id: 6145939901500, name: '#1009' }),
    uuid(9),
  )

  const creatorId = sale.creator_id
  await call('admin.listUsers', operator, { role: 'creator', limit: 2 })
  await call('admin.previewSuspension', operator, { id: creatorId })
  await call('admin.suspendUser', operator, {
    id: creatorId,
    reason: 'Bought through their own link after a warning.',
  })
  await call('admin.reinstateUser', operator, {
    id: creatorId,
    reason: 'Agreed to the rules on own purchases.',
  })
  sana = await logIn(CREATORS[0].email, PASSWORDS.creator)

  // Cash on delivery.
  clock.set('2026-12-06T10:12:00.000Z')
  const doorstep = await visit(slug)
  const unpaid = { id: 6145939901600, name: '#1010', financial_status: 'pending' }
  const placed = orderFrom('path-landing-site', doorstep.click, clock.now(), unpaid)
  await report(placed, uuid(8), 'orders/create')
  for (const [token, caller] of [
    [owner, 'merchant'],
    [sana, 'creator'],
  ] as const) {
    await call('pendingOrders.list', token, { state: 'pending', offer_id: offer.id }, caller)
  }

  // What everyone sees of it.
  for (const [token, caller] of [
    [owner, 'merchant'],
    [sana, 'creator'],
  ] as const) {
    await call('summaries.get', token, NOVEMBER, caller)
    await call('summaries.series', token, { by: 'link', ...NOVEMBER }, caller)
    await call('users.me', token, {}, caller)
  }
  await call('payouts.list', sana)
  await call('billing.listCycles', owner)
  await call('sales.get', owner, { id: sale.id })
  await call('links.list', owner, {}, 'merchant')
  await call('links.list', sana, {}, 'creator')
  await call('stores.list', owner)
  await call('stores.get', owner, { id: store.id })

  // Accounts.
  await call('auth.resendVerification', sana)
  const { secret } = await call('auth.startTotp', sana)
  const code = () => {
    clock.pass(30_000)
    return codeOf(secret, clock)
  }
  await call('auth.confirmTotp', sana, { code: code() })
  await call('auth.stepUp', sana, { password: PASSWORDS.creator, code: code() })
  await call('auth.renewRecoveryCodes', sana, { code: code() })
  await call('auth.disableTotp', sana, { code: code() })
  const another = await logIn(CREATORS[0].email, PASSWORDS.creator)
  const wanted = { name: 'Weekly report', scope: 'read', expires_in_days: 90 }
  const apiKey = await call('auth.createApiKey', another, wanted)
  await call('auth.listApiKeys', another)
  await call('auth.deleteApiKey', another, { id: apiKey.id })
  await call('auth.logout', another)
  await logIn(CREATORS[0].email, PASSWORDS.creator)
  const sessions = (await call('auth.listSessions', sana)).items
  await call('auth.endSession', sana, { id: sessions.find((one: Answer) => !one.current).id })
  await call('auth.endOtherSessions', sana)
  await call('auth.changePassword', sana, {
    current_password: PASSWORDS.creator,
    new_password: 'eleven mangoes at noon',
  })
  await call('stores.rotateSecret', owner, {
    id: store.id,
    webhook_secret: 'shpss_e07b6d2f41c85a93',
    revoke_former: false,
  })
  await call('stores.remove', owner, { id: store.id })
  await call('webhooks.remove', owner, { id })

  const edge = {
    request_id: requestId,
    order,
    delivery,
    shop_domain: SHOP_DOMAIN,
    tracked_url: tracked,
    processor_events: {
      payment_confirmed: payment,
      payout_confirmed: paid,
      payout_failed: {
        type: 'payout.failed',
        data: { ...paid.data, reason: 'beneficiary account is dormant' },
      },
    },
    files,
  }
  const text = JSON.stringify({ ...recorder, edge }, null, 2)
    .replaceAll(receiver.url, ENDPOINT_URL)
    .replace(/("duration_ms":) \d+/g, '$1 187')
  writeFileSync(FILE, `${text}\n`)
  receiver.close()
  await web.close()
}

await main()
