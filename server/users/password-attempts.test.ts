import * as assert from 'uvu/assert'
import { createLog } from '../platform/log.ts'
import type { Platform } from '../platform/platform.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { outcomeOf } from '../test/testkit/people.ts'
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
  /** Wrong passwords from addresses that no one knows, until the account takes no more of them. */
  const guess = async (platform: Platform) => {
    for (let index = 0; index < 10; index += 1) {
      assert.is(
        await outcomeOf(login(platform, EMAIL, 'a wrong guess', `198.51.100.${index}`)),
        'invalid_credentials',
      )
    }
    assert.is(await outcomeOf(login(platform, EMAIL, PASSWORD, '198.51.100.99')), 'rate_limited')
  }
  /** As another process, or this one after a restart, sees the database. */
  const again = ({ testDatabase, clock }: Testbed) =>
    platformOver(testDatabase.database, testDatabase.url, clock, SETTINGS)
  /** PostgreSQL counts for all processes, also over a restart, by the database's clock. */
  const passWindow = async ({ platform: { database } }: Testbed) => {
    if (database.dialect !== 'postgresql') return
    await database.transaction((tx) => tx.deleteFrom('rate_limits').execute())
  }
  const addressesOf = ({ platform }: Testbed) =>
    platform.database.reader.selectFrom('login_addresses').selectAll().execute()

  it('let the owner in where they logged in before, also after a restart, for 90 days', async ({ bed }) => {
    await signUp(bed)
    const { platform, clock } = bed
    assert.is(await outcomeOf(login(platform, EMAIL, PASSWORD, '2001:db8:1:2::7')), 'ok')
    await guess(platform)
    assert.is(await outcomeOf(login(platform, EMAIL, PASSWORD, HOME)), 'ok')
    assert.is(await outcomeOf(login(platform, EMAIL, PASSWORD, '2001:db8:1:2::8')), 'ok', 'the same network')
    assert.is(await outcomeOf(login(platform, EMAIL, PASSWORD, '2001:db8:1:3::7')), 'rate_limited')

    const later = again(bed)
    clock.pass(80 * DAY)
    await passWindow(bed)
    await guess(later)
    assert.is(await outcomeOf(login(later, EMAIL, PASSWORD, HOME)), 'ok')
    const muchLater = again(bed)
    clock.pass(90 * DAY + 1)
    await passWindow(bed)
    await guess(muchLater)
    assert.is(await outcomeOf(login(muchLater, EMAIL, PASSWORD, HOME)), 'rate_limited')
  })

  it('keep a bounded number of addresses, and none that can be read', async ({ bed }) => {
    const { platform, clock } = bed
    const userId = await signUp(bed)
    for (let index = 0; index < 22; index += 1) {
      clock.pass(1000)
      assert.is(await outcomeOf(login(platform, EMAIL, PASSWORD, `203.0.113.${index}`)), 'ok')
    }
    const rows = await addressesOf(bed)
    assert.is(rows.length, 20)
    assert.ok(rows.every((row) => row.user_id === userId && /^[0-9a-f]{64}$/.test(row.address_hash)))
    const oldest = Math.min(...rows.map((row) => row.used_at))
    assert.is(oldest, clock.now() - 19_000, 'the latest ones')

    const other = {
      email: 'other@example.pk',
      password: PASSWORD,
      role: 'creator',
      displayName: 'O',
    } as const
    await register(platform, { ...other, address: '203.0.113.21' })
    const hashes = (await addressesOf(bed)).map((row) => row.address_hash)
    assert.is(new Set(hashes).size, 21, 'the address of two accounts cannot be recognized')
  })

  it('are logged with the account and a part of the address, and nothing that was typed', async ({ bed }) => {
    const accountId = await signUp(bed)
    const { platform } = bed
    const lines = logged(platform)
    await outcomeOf(login(platform, EMAIL, 'my-typed-secret', '203.0.113.77'))
    await outcomeOf(login(platform, EMAIL, 'my-typed-secret', '203.0.113.77'))
    await outcomeOf(login(platform, 'my-typed-secret@example.pk', 'my-typed-secret', '2001:db8:1:2::3'))
    await outcomeOf(login(platform, EMAIL, PASSWORD, HOME))
    assert.equal(lines, [
      { event: 'wrong_password', accountId, addressPrefix: '203.0.113.0/24' },
      { event: 'passwords_limited', accountId, addressPrefix: '203.0.113.0/24' },
      { event: 'wrong_password', accountId: null, addressPrefix: '2001:db8:1::/48' },
    ])
  })

  it.run()
}
