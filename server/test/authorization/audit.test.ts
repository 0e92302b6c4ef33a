import * as assert from 'uvu/assert'
import { appRouter } from '../../http/router.ts'
import { proceduresOf } from '../../platform/api/procedure.ts'
import { rowsOf } from '../testkit/rows.ts'
import { send, waysTo } from './calls.ts'
import { inputFor, rowsFor } from './recipes.ts'
import { actorOf, authorize, sceneSuites } from './scene.ts'

/** An admin's changes to the own account are those of every role. */
const isOwnAccount = (name: string) =>
  name.startsWith('auth.') || ['users.updateMe', 'users.updateNotifications'].includes(name)

const ACTIONS = proceduresOf(appRouter).filter(
  ({ name, type, meta }) => type === 'mutation' && meta.callers.includes('admin') && !isOwnAccount(name),
)

for (const { it } of sceneSuites('what admins do leaves an audit row')) {
  it('and there are such actions', () => assert.ok(ACTIONS.length >= 5))

  for (const record of ACTIONS) {
    for (const row of rowsFor(record.name)) {
      for (const way of ['rest', 'trpc'] as const)
        it(`${row} over ${way}`, async ({ scene, tenant }) => {
          const { platform, base } = scene
          const me = actorOf(tenant, 'admin')
          const input = await inputFor(row, { scene, tenant, me })
          const before = await rowsOf(platform, 'audit_entries')
          const call = waysTo(record, input)[way]
          assert.ok(call)
          const answer = await send(base, call, (await authorize(platform, me.userId)).authorization)
          assert.ok(answer.status < 300, answer.text)
          const [added, more] = (await rowsOf(platform, 'audit_entries')).slice(before.length)
          assert.ok(added?.after, 'it leaves none')
          assert.is(more, undefined)
          assert.is(added.actor, me.userId)
          assert.match(added.action, /^[a-z_]+\.[a-z_]+$/)
          if ('id' in input) assert.is(added.subject_id, input.id)
        })
    }
  }

  it.run()
}
