// proof only
import * as assert from 'uvu/assert'
import { appRouter } from '../../http/router.ts'
import { proceduresOf } from '../../platform/api/procedure.ts'
import { send, waysTo } from './calls.ts'
import { changedTables, tableDigests } from './digest.ts'
import { inputFor, rowsFor } from './recipes.ts'
import { actorOf, authorize, sceneSuites } from './scene.ts'

for (const { it } of sceneSuites('what makes something, repeated with its key,')) {
  for (const record of proceduresOf(appRouter).filter(({ meta }) => meta.creates)) {
    it(record.name, async ({ scene, tenant }) => {
      const { platform, base } = scene
      const [role = 'creator'] = record.meta.callers === 'public' ? [] : record.meta.callers
      const me = actorOf(tenant, role)
      const { authorization } = await authorize(platform, me.userId)
      const [row = ''] = rowsFor(record.name)
      for (const way of ['rest', 'trpc'] as const) {
        const call = waysTo(record, await inputFor(row, { scene, tenant, me }))[way]
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
