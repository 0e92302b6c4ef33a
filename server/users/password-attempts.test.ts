import * as assert from 'uvu/assert'
import { createLog } from '../platform/log.ts'
import type { Platform } from '../platform/platform.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { outcomeOf } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { DAY, platformOver, type Testbed } from '../test/testkit/testbed.ts'
import { login, register } from './credentials.service.ts'

const PASSWORD = 'a long passphrase'
const EMAIL = 'owner@example.pk'
const HOME = '192.0.2.1'
const SETTINGS = { RATE_LIMIT_AUTH: '1' }

interface Line {
  event: string
  accountId: string | null
  addressPrefix: string
}

/** Everything that the platform logs from now on. */
function logged(platform: Platform): Line[] {
  const lines: Line[] = []
  const log = createLog('silent')
  Object.assign(log, { warn: (facts: Line) => lines.push(facts) })
  Object.assign(platform, { log })
  return lines
}

for (const { it } of marketSuites('password attempts', { settings: SETTINGS })) {
  const signUp = async ({ platform }: Testbed) => {
    const given = { email: EMAIL, password: PASSWORD, role: 'creator', displayName: 'Owner' } as const
    return (await register(platform, { ...given, address: HOME })).userId
  }
  /** The result of a log-in with the right password from an address. */
  const logIn = (platform: Platform, address: string) => outcomeOf(login(platform, EMAIL, PASSWORD, address))
  /** Wrong passwords from addresses that no one knows, until the account takes no more of them. */
  const guess = async (platform: Platform) => {
    for (let index = 0; index < 10; index += 1) {
      const wrong = login(platform, EMAIL, 'a wrong guess', `198.51.100.${index}`)
      assert.is(await outcomeOf(wrong), 'invalid_credentials')
    }
    assert.is(await logIn(platform, '198.51.100.99'), 'rate_limited')
  }
  /** The database as another process, or this one after a restart, sees it `days` later, when no try counts. */
  const later = async ({ testDatabase, clock }: Testbed, days: number) => {
    clock.pass(days * DAY)
    const { database, url } = testDatabase
    // PostgreSQL counts for all processes, also over a restart, by the database's clock.
    if (database.dialect === 'postgresql') await database.writer.deleteFrom('rate_limits').execute()
    return platformOver(database, url, clock, SETTINGS)
  }
  const addressesOf = ({ platform }: Testbed) => rowsOf(platform, 'login_addresses', {}, 'used_at')

  it('let the owner in where they logged in before, also after a restart, for 90 days', async ({ bed }) => {
    await signUp(bed)
    const { platform } = bed
    assert.is(await logIn(platform, '2001:db8:1:2::7'), 'ok')
    await guess(platform)
    assert.is(await logIn(platform, HOME), 'ok')
    assert.is(await logIn(platform, '2001:db8:1:2::8'), 'ok', 'the same network')
    assert.is(await logIn(platform, '2001:db8:1:3::7'), 'rate_limited')
    for (const [days, outcome] of [
      [80, 'ok'],
      [91, 'rate_limited'],
    ] as const) {
      const again = await later(bed, days)
      await guess(again)
      assert.is(await logIn(again, HOME), outcome, `${days} days later`)
    }
  })

  it('keep a bounded number of addresses, and none that can be read', async ({ bed }) => {
    const { platform, clock } = bed
    const userId = await signUp(bed)
    for (let index = 0; index < 22; index += 1) {
      clock.pass(1000)
      assert.is(await logIn(platform, `203.0.113.${index}`), 'ok')
    }
    const rows = await addressesOf(bed)
    assert.is(rows.length, 20)
    assert.ok(rows.every((row) => row.user_id === userId && /^[0-9a-f]{64}$/.test(row.address_hash)))
    assert.is(rows[0]?.used_at, clock.now() - 19_000, 'the latest ones')

    const other = {
      email: 'other@example.pk',
      password: PASSWORD,
      role: 'creator',
      displayName: 'O',
    } as const
    await register(platform, { ...other, address: '203.0.113.21' })
    const hashes = pluck(await addressesOf(bed), 'address_hash')
    assert.is(new Set(hashes).size, 21, 'the address of two accounts cannot be recognized')
  })

  it('are logged with the account and a part of the address, and nothing that was typed', async ({ bed }) => {
    const accountId = await signUp(bed)
    const { platform } = bed
    const lines = logged(platform)
    const typed = 'my-typed-secret'
    await outcomeOf(login(platform, EMAIL, typed, '203.0.113.77'))
    await outcomeOf(login(platform, EMAIL, typed, '203.0.113.77'))
    await outcomeOf(login(platform, `${typed}@example.pk`, typed, '2001:db8:1:2::3'))
    await logIn(platform, HOME)
    assert.equal(lines, [
      { event: 'wrong_password', accountId, addressPrefix: '203.0.113.0/24' },
      { event: 'passwords_limited', accountId, addressPrefix: '203.0.113.0/24' },
      { event: 'wrong_password', accountId: null, addressPrefix: '2001:db8:1::/48' },
    ])
  })

  it.run()
}
