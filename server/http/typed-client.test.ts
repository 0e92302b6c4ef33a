import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { createClient, isRefusal, type Outputs, problemIn } from '../../shared/client/index.ts'
import { proceduresOf } from '../platform/api/procedure.ts'
import { createIds } from '../platform/ids.ts'
import { openWebSide } from '../test/testkit/live-followers.ts'
import { openMarketplace } from '../test/testkit/marketplace.ts'
import { logIn } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { appRouter } from './router.ts'

test('the typed client follows live changes with the token that it shows for calls', async () => {
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
    // Its name is that of a method of every function.
    const applying = client.applications.apply.mutate({ id: link.offer_id })
    assert.is(problemIn(await applying.catch((error) => error))?.code, 'forbidden')
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

test('an input without required fields may be left out', () => {
  const strict = proceduresOf(appRouter).filter(({ inputs: [input] }) => {
    assert.instance(input, z.ZodType)
    const schema = input as z.ZodType
    return schema.safeParse({}).success && !schema.safeParse(undefined).success
  })
  assert.equal(pluck(strict, 'name'), [])
})

test.run()
