// proof only
import * as assert from 'uvu/assert'
import type { Role } from '../../../shared/schemas/common.ts'
import { inputShapeOf } from '../../http/rest-input.ts'
import { appRouter } from '../../http/router.ts'
import { setOfferStatus } from '../../offers/offers.service.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import { encodeCursor } from '../../platform/api/page.ts'
import { type ProcedureRecord, proceduresOf } from '../../platform/api/procedure.ts'
import { addLiveOffer } from '../testkit/listings.ts'
import { orderBody } from '../testkit/orders.ts'
import { addApiKey } from '../testkit/people.ts'
import { assertNone } from '../testkit/pluck.ts'
import { rowOf } from '../testkit/rows.ts'
import { type Input, problemOf, send, type WebAnswer, type WebCall, waysTo } from './calls.ts'
import { changedTables, tableDigests } from './digest.ts'
import { idFieldsOf } from './foreign-ids.ts'
import {
  freshApplication,
  freshDelivery,
  freshDraft,
  freshFlag,
  freshJob,
  freshSale,
  inputFor,
  rowsFor,
} from './recipes.ts'
import { actorOf, addTenant, authorize, type Scene, sceneSuites, type Tenant } from './scene.ts'

/** What an id that is none of the caller's business comes to: a list filtered by it is empty, nothing else is found. */
const refusalOf = (procedure: string) => (procedure.endsWith('.list') ? 'empty list' : '404')

/** Ids of another tenant that a caller may use, as `procedure field`. */
const OPEN_IDS: Record<string, readonly Kind[]> = {
  // A filter over what is public: live offers.
  'offers.list merchant_id': ['merchant'],
  'offers.get id': ['live offer'],
  // Creators apply to any merchant; what is not live answers 409.
  'applications.apply id': ['draft offer', 'live offer', 'ended offer'],
}

/** Admins have no tenant: they may use every id of the right kind. */
const ADMIN_IDS: Record<string, readonly Kind[]> = {
  'offers.get id': ['draft offer', 'live offer', 'ended offer'],
  'offers.list merchant_id': ['merchant'],
  'admin.resolveFlag id': ['flag'],
  'admin.vetOffer id': ['draft offer', 'live offer', 'ended offer'],
  'admin.previewSuspension id': ['merchant', 'creator', 'admin'],
  'admin.suspendUser id': ['merchant', 'creator', 'admin'],
  'admin.reinstateUser id': ['merchant', 'creator', 'admin'],
  'jobs.startExport billing_cycle_id': ['billing cycle'],
}

/** Contained in every private text of the other tenant. */
const MARK = 'seen-by-its-owner-only'

const records = proceduresOf(appRouter)
const idFields = records.flatMap((record) => {
  const { rest } = record.meta
  const { schema } = inputShapeOf(record, rest ?? { method: 'POST', path: '/' })
  return idFieldsOf(schema).map((field) => ({ record, field, name: `${record.name} ${field}` }))
})

type Ids = Awaited<ReturnType<typeof fill>>
type Kind = keyof Ids

/** Everything that a tenant can own and that has an id, once, with a mark in each private text. */
async function fill(scene: Scene, tenant: Tenant) {
  const { platform, market } = scene
  const { merchant, creator, admin, shop, link } = tenant
  const { id: ended } = await addLiveOffer(platform, merchant)
  await setOfferStatus(platform, merchant.userId, ended, 'ended')
  await market.earn(shop, link, 5_000_000)
  await runPayouts(platform, market.processor)
  await market.deliver(shop, orderBody({ price: 100_000, createdAt: platform.clock.now(), name: MARK }))
  await market.drainUntilIdle()
  const sale = await freshSale(scene, tenant)
  const webhook = await freshDelivery(platform, merchant, MARK)
  return {
    merchant: merchant.userId,
    creator: creator.userId,
    admin: admin.userId,
    session: (await authorize(platform, merchant.userId)).sessionId,
    'API key': (await addApiKey(platform, merchant.userId, 'read', MARK)).id,
    store: shop.storeId,
    'draft offer': await freshDraft(platform, tenant, MARK),
    'live offer': link.offer_id,
    'ended offer': ended,
    'pending application': await freshApplication(platform, tenant, MARK),
    'approved application': (await rowOf(platform, 'applications')).id,
    link: link.id,
    click: (await rowOf(platform, 'clicks')).id,
    'accepted sale': sale,
    'rejected sale': (await rowOf(platform, 'sales', { acceptance_status: 'rejected' })).id,
    'billing cycle': (await rowOf(platform, 'billing_cycles', { merchant_id: merchant.userId })).id,
    payout: (await rowOf(platform, 'payouts')).id,
    "merchant's export": await freshJob(platform, merchant),
    "creator's export": await freshJob(platform, creator),
    "admin's export": await freshJob(platform, admin),
    flag: await freshFlag(platform),
    'webhook endpoint': webhook.endpointId,
    'webhook delivery': webhook.id,
  }
}

interface Attempt {
  what: string
  record: ProcedureRecord
  role: Role | null
  input: Input
}

for (const { it, dialect } of sceneSuites("another tenant's ids")) {
  let scene: Scene
  let mine: Tenant
  let ids: Ids
  let kinds: Kind[]
  const authorization = new Map<Role | null, string | null>([[null, null]])
  let tried = 0

  it.before(async (context) => {
    scene = context.scene
    const { tenant: theirs } = context
    const { platform, market } = scene
    ids = await fill(scene, theirs)
    kinds = Object.keys(ids) as Kind[]
    mine = await addTenant(scene, 'Mine')
    await market.earn(mine.shop, mine.link, 5_000_000)
    // Each of them also works with an account of the other tenant.
    await market.addLink(mine.shop, theirs.creator)
    await market.addLink(theirs.shop, mine.creator)
    for (const role of ['merchant', 'creator', 'admin'] as const) {
      authorization.set(role, (await authorize(platform, actorOf(mine, role).userId)).authorization)
    }
  })
  it.after(() => {
    console.log(
      `\nsize: another tenant's ids on ${dialect}: ${idFields.length} id parameters x ${kinds.length} kinds, ${tried} requests`,
    )
  })

  /** A call by an own account that would succeed with an own id. */
  function ownInput({ name }: ProcedureRecord, role: Role | null): Promise<Input> {
    const me = actorOf(mine, role ?? 'creator')
    return inputFor(rowsFor(name)[0] ?? '', { scene, tenant: mine, me })
  }

  /** Sends it as the own account of this role. */
  function sendAs(role: Role | null, call: WebCall): Promise<WebAnswer> {
    tried += 1
    return send(scene.base, call, authorization.get(role) ?? null)
  }

  function rolesOf({ meta }: ProcedureRecord): (Role | null)[] {
    return meta.callers === 'public' ? [null, 'merchant', 'creator', 'admin'] : [...meta.callers]
  }

  /** Sends all on both ways, with a look at the whole database before and after. */
  async function attempt(attempts: readonly Attempt[]): Promise<void> {
    const { reader } = scene.platform.database
    const before = await tableDigests(reader)
    for (const { what, record, role, input } of attempts) {
      for (const [way, call] of Object.entries(waysTo(record, input))) {
        const answer = await sendAs(role, call)
        assert.is(outcomeOf(answer), refusalOf(record.name), `${what} as ${role} over ${way}: ${answer.text}`)
        assert.not.ok(answer.text.includes(MARK), `${what} as ${role} over ${way} shows ${answer.text}`)
      }
    }
    assert.equal(changedTables(before, await tableDigests(reader)), [])
  }

  it('every id in a path, and every one that is open to some, is a parameter of a procedure', () => {
    const found = idFields.map(({ name }) => name)
    assert.ok(found.length > 25)
    assertNone([...Object.keys(OPEN_IDS), ...Object.keys(ADMIN_IDS)], (name) => !found.includes(name))
    const inPath = scene.routes.filter(({ url }) => url.includes(':')).map(({ url }) => url)
    const known = new Set(records.map(({ meta }) => meta.rest?.path))
    const others = [...new Set(inPath)].filter((url) => !known.has(url)).sort()
    assert.equal(others, ['/docs/guides/:name', '/go/:slug', '/jobs/:id/file', '/trpc/:path'])
  })

  for (const { record, field, name } of idFields) {
    it(name, async () => {
      const attempts: Attempt[] = []
      for (const role of rolesOf(record)) {
        const input = await ownInput(record, role)
        const open = (role === 'admin' ? ADMIN_IDS : OPEN_IDS)[name] ?? []
        for (const kind of kinds) {
          if (open.includes(kind)) continue
          attempts.push({ what: `${name} of ${kind}`, record, role, input: { ...input, [field]: ids[kind] } })
        }
      }
      await attempt(attempts)
    })
  }

  it("another one's export file is 404 to everybody else", async () => {
    for (const role of ['merchant', 'creator', 'admin'] as const) {
      for (const kind of kinds) {
        for (const method of ['GET', 'HEAD']) {
          const answer = await sendAs(role, { method, path: `/jobs/${ids[kind]}/file` })
          assert.is(answer.status, 404, `${kind} as ${role}`)
        }
      }
    }
  })

  it('a cursor made of their ids shows nothing but what is mine', async () => {
    const lists = records.filter((record) =>
      inputShapeOf(record, record.meta.rest ?? { method: 'GET', path: '/' }).fields.has('cursor'),
    )
    assert.ok(lists.length > 5)
    for (const record of lists.filter(({ name }) => name !== 'offers.list')) {
      for (const role of rolesOf(record)) {
        const input = await ownInput(record, role)
        const shown = await idsShown(record, role, input)
        for (const kind of kinds) {
          const cursor = encodeCursor(ids[kind])
          for (const id of await idsShown(record, role, { ...input, cursor })) {
            assert.ok(shown.includes(id), `${record.name} as ${role} after ${kind} shows ${id}`)
          }
        }
      }
    }
  })

  async function idsShown(record: ProcedureRecord, role: Role | null, input: Input): Promise<string[]> {
    const call = waysTo(record, { limit: 100, ...input }).rest
    assert.ok(call)
    const answer = await sendAs(role, call)
    assert.is(answer.status, 200, answer.text)
    return (JSON.parse(answer.text) as { items: { id: string }[] }).items.map(({ id }) => id)
  }

  it.run()
}

function outcomeOf(answer: WebAnswer): string {
  if (answer.status === 404) return problemOf(answer).code === 'not_found' ? '404' : answer.text
  const body = answer.status === 200 ? JSON.parse(answer.text) : {}
  const items = body.items ?? body.result?.data?.items
  return items?.length === 0 ? 'empty list' : String(answer.status)
}
