// proof only
import * as assert from 'uvu/assert'
import { inputShapeOf, type JsonSchema } from '../../http/rest-input.ts'
import { appRouter } from '../../http/router.ts'
import { proceduresOf } from '../../platform/api/procedure.ts'
import { send } from './calls.ts'
import { authorize, sceneSuites } from './scene.ts'

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

const JSON_TYPE = { 'content-type': 'application/json' }

for (const { it } of sceneSuites('fields that no input has')) {
  it('no object of an input is open', () => {
    for (const record of proceduresOf(appRouter)) {
      const { schema } = inputShapeOf(record, record.meta.rest ?? { method: 'POST', path: '/' })
      assert.equal(openObjects(schema, record.name), [])
    }
  })

  it('__proto__ has no effect', async ({ scene: { platform, base }, tenant }) => {
    const { authorization } = await authorize(platform, tenant.merchant.userId)
    const rename = (method: string, path: string, more = '') => {
      const body = `{"display_name":"Renamed","__proto__":{"role":"admin","suspended":true}${more}}`
      return send(base, { method, path, headers: JSON_TYPE, body }, authorization)
    }
    assert.is((await rename('PATCH', '/me', ',"constructor":1')).status, 400)
    assert.is((await rename('POST', '/trpc/users.updateMe', ',"constructor":1')).status, 400)
    await rename('POST', '/trpc/users.updateMe')
    assert.is((Object.prototype as { role?: string }).role, undefined)
    const me = await send(base, { method: 'GET', path: '/me' }, authorization)
    assert.match(me.text, /"role":"merchant".*"suspended":false/)
  })

  it.run()
}
