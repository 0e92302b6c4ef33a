import { createTRPCClient, httpBatchLink, httpLink } from '@trpc/client'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { createClient, isRefusal, type Outputs } from '../../shared/client/index.ts'
import { proceduresOf } from '../platform/api/procedure.ts'
import { createIds } from '../platform/ids.ts'
import { openWebSide } from '../test/testkit/live-followers.ts'
import { openMarketplace } from '../test/testkit/marketplace.ts'
import { logIn } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'
import { type AppRouter, appRouter } from './router.ts'

const it = suite<{ bed: WebTestbed }>('the typed tRPC client')
it.before(async (world) => {
  world.bed = await openWebTestbed('sqlite')
})
it.after(({ bed }) => bed.close())

const codeOf = (error: { data: { problem: { code: string } } }) => error.data.problem.code

it('reaches every procedure under its wire name, `applications.apply` too', async ({ bed }) => {
  const client = createTRPCClient<AppRouter>({ links: [httpLink({ url: `${bed.base}/trpc` })] })
  assert.equal(await client.offers.list.query({}), { items: [], next_cursor: null })
  const application = { id: '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e' }
  assert.is(await client.applications.apply.mutate(application).catch(codeOf), 'unauthenticated')
})

for (const [name, link] of Object.entries({ httpLink, httpBatchLink })) {
  it(`calls without an input what requires none: ${name}`, async ({ bed }) => {
    const body = {
      email: `${name}@example.pk`,
      password: 'a long passphrase',
      role: 'merchant',
      display_name: 'M',
    }
    const { token } = (await bed.ask('POST', '/auth/register', { body })).body
    const headers = { authorization: `Bearer ${token}` }
    const client = createTRPCClient<AppRouter>({ links: [link({ url: `${bed.base}/trpc`, headers })] })
    assert.is((await client.users.me.query()).display_name, 'M')
    const empty = { items: [], next_cursor: null }
    assert.equal(await client.offers.list.query(), empty)
    assert.equal(await client.stores.list.query(), empty)
    assert.equal(await client.sales.list.query(), empty)
    await client.auth.logout.mutate()
    assert.is(await client.users.me.query().catch(codeOf), 'unauthenticated')
  })
}

it('follows live changes with the token that it shows for calls', async () => {
  const market = await openMarketplace('sqlite', {}, createIds)
  const web = await openWebSide(market.platform)
  try {
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    const token = await logIn(market.platform, shop.actor)
    const client = createClient({ url: `${web.base}/`, token: () => token })
    const reported: Outputs['sales']['list']['items'] = []
    await new Promise<void>((resolve, reject) => {
      const subscription = client.live.changes.subscribe(
        {},
        {
          async onData({ data }) {
            if (data.kind === 'start') await market.order(shop, link, 100_000).then(market.drainUntilIdle)
            if (data.kind === 'sale') {
              reported.push(data.sale)
              subscription.unsubscribe()
              resolve()
            }
          },
          onError: reject,
        },
      )
    })
    assert.equal(reported, (await client.sales.list.query()).items)
    const stranger = createClient({ url: web.base, token: 'x'.repeat(43) })
    const refusal = await new Promise((resolve, reject) =>
      stranger.live.changes.subscribe({}, { onData: reject, onError: resolve }),
    )
    assert.ok(isRefusal(refusal, 'unauthenticated'), String(refusal))
  } finally {
    await web.close()
    await market.close()
  }
})

it('lets an input without required fields be left out', () => {
  const strict = proceduresOf(appRouter).filter(({ inputs: [input] }) => {
    assert.instance(input, z.ZodType)
    const schema = input as z.ZodType
    return schema.safeParse({}).success && !schema.safeParse(undefined).success
  })
  assert.equal(pluck(strict, 'name'), [])
})

it.run()
