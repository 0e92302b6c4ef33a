import * as assert from 'uvu/assert'
import { appRouter } from '../http/router.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { outcomeOf, requestOf } from '../test/testkit/people.ts'
import { rowOf } from '../test/testkit/rows.ts'
import { MINUTE } from '../test/testkit/testbed.ts'
import { register } from '../users/credentials.service.ts'

const PASSWORD = 'a long passphrase'
const payout_destination = { iban: 'PK36SCBL0000001123456702', account_title: 'SANA KHAN' }

for (const { it } of marketSuites('a first payout destination')) {
  it('needs more than a token once money waits for it', async ({ market, platform, clock }) => {
    const creatorOf = async (email: string) => {
      const account = { email, password: PASSWORD, role: 'creator', displayName: 'Sana' } as const
      const { userId } = await register(platform, { ...account, address: '127.0.0.1', agent: undefined })
      const { id } = await rowOf(platform, 'sessions', { user_id: userId })
      const actor = { userId, role: 'creator', sessionId: id } as const
      return { actor, me: appRouter.createCaller(requestOf(platform, actor)) }
    }
    const [fresh, poor, known, rich] = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) => creatorOf(`${name}@example.pk`)),
    )
    const shop = await market.addShop()
    for (const earning of [fresh, known, rich]) {
      if (earning) await market.order(shop, await market.addLink(shop, earning.actor), 100_000)
    }
    await market.drainUntilIdle()
    const give = (one = rich, current_password?: string) =>
      outcomeOf(one?.me.users.updateMe({ payout_destination, current_password }) ?? Promise.reject())
    assert.is(await give(fresh), 'ok', 'right after the log-in')
    clock.pass(11 * MINUTE)
    assert.is(await give(poor), 'ok', 'nothing is earned yet')
    assert.is(await give(rich), 'validation_failed')
    assert.is(await give(known, 'another passphrase'), 'invalid_credentials')
    assert.is(await give(known, PASSWORD), 'ok')
    const { payout_destination: kept } = (await rich?.me.users.me()) ?? {}
    assert.is(kept, null)
  })

  it.run()
}
