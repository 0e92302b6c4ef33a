// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { appRouter } from '../../http/router.ts'
import { proceduresOf } from '../../platform/api/procedure.ts'
import { proofDialects } from '../testkit/proof-size.ts'
import { send, waysTo } from './calls.ts'
import { changedTables, tableDigests } from './digest.ts'
import { procedureOf, RECIPES } from './recipes.ts'
import { actorOf, addTenant, authorize, openScene, type Scene, type Tenant } from './scene.ts'

const CREATING = proceduresOf(appRouter).filter(({ meta }) => meta.creates)

for (const dialect of proofDialects()) {
  const it = suite(`what makes something, repeated with its key, on ${dialect}`)
  let scene: Scene
  let tenant: Tenant
  it.before(async () => {
    scene = await openScene(dialect)
    tenant = await addTenant(scene, 'A')
  })
  it.after(() => scene.close())

  for (const record of CREATING) {
    it(record.name, async () => {
      const { platform, base } = scene
      const [role = 'creator'] = record.meta.callers === 'public' ? [] : record.meta.callers
      const me = actorOf(tenant, role)
      const { authorization } = await authorize(platform, me.userId)
      const [, recipe] = Object.entries(RECIPES).find(([row]) => procedureOf(row) === record.name) ?? []
      for (const way of ['rest', 'trpc'] as const) {
        const call = waysTo(record, (await recipe?.({ scene, tenant, me })) ?? {})[way]
        assert.ok(call, way)
        const keyed = { ...call, headers: { ...call.headers, 'idempotency-key': `${record.name} ${way}` } }
        const first = await send(base, keyed, authorization)
        assert.ok(first.status < 300, first.text)
        const before = await tableDigests(platform.database.reader)
        const again = await send(base, keyed, authorization)
        assert.equal([again.status, again.text], [first.status, first.text], way)
        assert.equal(changedTables(before, await tableDigests(platform.database.reader)), [], way)
      }
    })
  }

  it.run()
}
