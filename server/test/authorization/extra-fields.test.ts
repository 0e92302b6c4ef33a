// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inputShapeOf, type JsonSchema } from '../../http/rest-input.ts'
import { appRouter } from '../../http/router.ts'
import { type ProcedureRecord, proceduresOf } from '../../platform/api/procedure.ts'
import { proofDialects } from '../testkit/proof-size.ts'
import { problemOf, send } from './calls.ts'
import { actorOf, addTenant, authorize, openScene, type Scene, type Tenant } from './scene.ts'

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
  const it = suite(`fields that no input has on ${dialect}`)
  let scene: Scene
  let tenant: Tenant

  it.before(async () => {
    scene = await openScene(dialect)
    tenant = await addTenant(scene, 'A')
  })
  it.after(() => scene.close())

  it('no object of an input is open', () => {
    assert.equal(
      records.flatMap((record) => openObjects(schemaOf(record), record.name)),
      [],
    )
  })

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
