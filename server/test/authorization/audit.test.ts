import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { appRouter } from '../../http/router.ts'
import { proceduresOf } from '../../platform/api/procedure.ts'
import { proofDialects } from '../testkit/proof-size.ts'
import { send, waysTo } from './calls.ts'
import { procedureOf, RECIPES } from './recipes.ts'
import { actorOf, addTenant, authorize, openScene, type Scene, type Tenant } from './scene.ts'

/** An admin's changes to the own account are those of every role. */
const isOwnAccount = (name: string) =>
  name.startsWith('auth.') || ['users.updateMe', 'users.updateNotifications'].includes(name)

const ACTIONS = proceduresOf(appRouter).filter(
  ({ name, type, meta }) => type === 'mutation' && meta.callers.includes('admin') && !isOwnAccount(name),
)

for (const dialect of proofDialects()) {
  const it = suite(`what admins do leaves an audit row on ${dialect}`)
  let scene: Scene
  let tenant: Tenant
  it.before(async () => {
    scene = await openScene(dialect)
    tenant = await addTenant(scene, 'A')
  })
  it.after(() => scene.close())

  const rows = () =>
    scene.platform.database.reader.selectFrom('audit_entries').selectAll().orderBy('id').execute()

  it('and there are such actions', () => assert.ok(ACTIONS.length >= 5))

  for (const record of ACTIONS) {
    const recipes = Object.entries(RECIPES).filter(([row]) => procedureOf(row) === record.name)
    for (const way of ['rest', 'trpc'] as const) {
      it(`${record.name} over ${way}`, async () => {
        assert.ok(recipes.length > 0)
        const me = actorOf(tenant, 'admin')
        for (const [row, recipe] of recipes) {
          const input = await recipe({ scene, tenant, me })
          const before = await rows()
          const call = waysTo(record, input)[way]
          assert.ok(call, row)
          const { authorization } = await authorize(scene.platform, me.userId)
          const answer = await send(scene.base, call, authorization)
          assert.ok(answer.status < 300, answer.text)
          const [added, more] = (await rows()).slice(before.length)
          assert.ok(added, `${row} leaves none`)
          assert.is(more, undefined, row)
          assert.is(added.actor, me.userId)
          assert.match(added.action, /^[a-z_]+\.[a-z_]+$/)
          assert.ok(added.after, row)
          if ('id' in input) assert.is(added.subject_id, input.id)
        }
      })
    }
  }

  it.run()
}
