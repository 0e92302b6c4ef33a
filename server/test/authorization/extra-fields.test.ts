// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inputShapeOf, type JsonSchema } from '../../http/rest-input.ts'
import { appRouter } from '../../http/router.ts'
import { type ProcedureRecord, proceduresOf } from '../../platform/api/procedure.ts'
import { proofDialects } from '../testkit/proof-size.ts'
import { type Input, problemOf, send, waysTo } from './calls.ts'
import { changedTables, tableDigests } from './digest.ts'
import { procedureOf, RECIPES } from './recipes.ts'
import { actorOf, addTenant, authorize, openScene, type Scene, type Tenant } from './scene.ts'

/** Privileged fields, with the value that an attacker would set. */
function privileges({ merchant, creator }: Tenant): Input {
  return {
    id: merchant.userId,
    user_id: merchant.userId,
    merchant_id: merchant.userId,
    merchant: { id: merchant.userId },
    creator_id: creator.userId,
    owner_id: merchant.userId,
    actor: { userId: merchant.userId, role: 'admin', sessionId: merchant.sessionId },
    role: 'admin',
    is_admin: true,
    status: 'live',
    state: 'paid',
    suspended: false,
    suspended_at: null,
    password_hash: 'x',
    session_id: merchant.sessionId,
    commission_rate: 90,
    locked_commission_rate: 90,
    commission: '1000.00',
    platform_fee: '0.00',
    amount: '1000.00',
    amount_due: '0.00',
    balance: { released: '1000000.00' },
    acceptance_status: 'accepted',
    billing_cycle_id: merchant.userId,
    vetting: 'approved',
    vetting_verdict: 'approved',
    vetted_rate: 9000,
    created_at: '2020-01-01T00:00:00.000Z',
    decided_at: '2020-01-01T00:00:00.000Z',
    constructor: { prototype: { role: 'admin' } },
    prototype: { role: 'admin' },
    toString: 'x',
  }
}

const records = proceduresOf(appRouter)

/** The objects of a schema that would let a field pass that they do not name, by their path. */
function openObjects(schema: JsonSchema, path = 'input'): string[] {
  const open = schema.properties && schema.additionalProperties !== false ? [path] : []
  const fields = Object.entries({ ...schema.properties, ...schema.$defs })
  return [
    ...open,
    ...fields.flatMap(([name, field]) => openObjects(field, `${path}.${name}`)),
    ...(schema.items ? openObjects(schema.items, `${path}[]`) : []),
    ...(schema.anyOf ?? []).flatMap((option) => openObjects(option, path)),
  ]
}

function schemaOf(record: ProcedureRecord): JsonSchema {
  return inputShapeOf(record, record.meta.rest ?? { method: 'POST', path: '/' }).schema
}

for (const dialect of proofDialects()) {
  const it = suite(`privileged fields on ${dialect}`)
  let scene: Scene
  let tenant: Tenant
  let tried = 0

  it.before(async () => {
    scene = await openScene(dialect)
    tenant = await addTenant(scene, 'A')
  })
  it.after(async () => {
    console.log(
      `\nsize: privileged fields on ${dialect}: ${records.length} procedures x ${Object.keys(privileges(tenant)).length} fields, ${tried} requests`,
    )
    await scene.close()
  })

  it('no object of an input is open', () => {
    assert.equal(
      records.flatMap((record) => openObjects(schemaOf(record), record.name)),
      [],
    )
  })

  for (const record of records) {
    it(`${record.name} refuses each of them and changes nothing`, async () => {
      const { platform, base } = scene
      const role = record.meta.callers === 'public' ? 'creator' : (record.meta.callers[0] ?? 'creator')
      const me = actorOf(tenant, role)
      const [, recipe] = Object.entries(RECIPES).find(([key]) => procedureOf(key) === record.name) ?? []
      assert.ok(recipe, `${record.name} has no recipe`)
      const input = await recipe({ scene, tenant, me })
      const { authorization } = await authorize(platform, me.userId)
      const before = await tableDigests(platform.database.reader)
      const { rest } = waysTo(record, input)
      const tolerated =
        rest && record.meta.rest?.ignoresUnknownQuery === 'all' ? await send(base, rest, authorization) : null
      const known = Object.keys(schemaOf(record).properties ?? {})
      for (const [name, value] of Object.entries(privileges(tenant))) {
        if (known.includes(name)) continue
        for (const [way, call] of Object.entries(waysTo(record, { ...input, [name]: value }))) {
          tried += 1
          const answer = await send(base, call, authorization)
          const where = `${name} over ${way}: ${answer.text}`
          if (way === 'rest' && tolerated) {
            assert.equal([answer.status, answer.text], [200, tolerated.text], where)
            continue
          }
          assert.is(answer.status, 400, where)
          const { code, issues } = problemOf(answer)
          assert.is(code, 'validation_failed', where)
          assert.ok(
            issues?.some(({ path }) => path === name),
            where,
          )
        }
      }
      assert.equal(changedTables(before, await tableDigests(platform.database.reader)), [])
    })
  }

  it('a body cannot name what the path names', async () => {
    const { platform, base } = scene
    for (const record of records) {
      const { rest, callers } = record.meta
      if (!rest?.path.includes(':') || (rest.method !== 'POST' && rest.method !== 'PATCH')) continue
      const me = actorOf(tenant, callers === 'public' ? 'creator' : (callers[0] ?? 'creator'))
      const path = rest.path.replace(/:\w+/g, platform.ids.next())
      const call = {
        method: rest.method,
        path,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: me.userId }),
      }
      const answer = await send(base, call, (await authorize(platform, me.userId)).authorization)
      assert.is(answer.status, 400, record.name)
      assert.ok(
        problemOf(answer).issues?.some((issue) => issue.path === 'id'),
        record.name,
      )
    }
  })

  it('__proto__ has no effect', async () => {
    const { platform, base } = scene
    const { authorization } = await authorize(platform, tenant.merchant.userId)
    const body = '{"display_name":"Renamed","__proto__":{"role":"admin","suspended":true},"constructor":1}'
    for (const path of ['/me', '/trpc/users.updateMe']) {
      const method = path === '/me' ? 'PATCH' : 'POST'
      const call = { method, path, headers: { 'content-type': 'application/json' }, body }
      assert.is((await send(base, call, authorization)).status, 400)
    }
    const bare = body.replace(',"constructor":1', '')
    const call = {
      method: 'POST',
      path: '/trpc/users.updateMe',
      headers: { 'content-type': 'application/json' },
    }
    await send(base, { ...call, body: bare }, authorization)
    assert.is((Object.prototype as { role?: string }).role, undefined)
    const me = await send(base, { method: 'GET', path: '/me' }, authorization)
    assert.match(me.text, /"role":"merchant".*"suspended":false/)
  })

  it.run()
}
