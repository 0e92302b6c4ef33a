import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createClickRecorder } from '../clicks/clicks.service.ts'
import { AddressHashes } from '../clicks/visitors.ts'
import { testDialects } from '../test/testkit/databases.ts'
import { partly } from '../test/testkit/market-suites.ts'
import { DAY, HOUR } from '../test/testkit/testbed.ts'
import { openWatchedWorld, type WatchedWorld } from '../test/testkit/watched-world.ts'
import { serverOver } from '../test/testkit/web.ts'
import { ClickWatch } from './click-watch.service.ts'

const DATACENTER_NETWORKS = '203.0.113.0/24,2001:db8::/32'
const SETTINGS = { FLAG_CLICKS: '5', FLAG_CLICKS_SECONDS: '60', DATACENTER_NETWORKS }
/** Of a data center, by these settings. */
const ROBOT = '203.0.113.7'
const BROWSER = 'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36'

for (const dialect of testDialects()) {
  const it = partly(suite<{ world: WatchedWorld }>(`the watch over clicks on ${dialect}`), dialect)
  it.before.each(async (context) => {
    context.world = await openWatchedWorld(dialect, SETTINGS)
  })
  it.after.each(({ world }) => world.close())

  const visits = ({ evidence }: { evidence: Record<string, unknown> }) =>
    Object.values(evidence.visits_by_address_hash as Record<string, number>)

  it('flags a link that one address visits too often', async ({ world }) => {
    const { platform, clock, link } = world
    const watch = new ClickWatch(platform)
    const addresses = new AddressHashes()
    const at = clock.now()
    const observe = (address: string, times: number) => {
      const visitor = addresses.of(address, at)
      for (let time = 0; time < times; time += 1) watch.observe({ visitor, linkId: link.id, at, address })
    }
    observe(ROBOT, 4)
    for (let last = 0; last < 100; last += 1) observe(`203.0.113.${100 + last}`, 1)
    await watch.flush()
    assert.equal(await world.flags('click_velocity'), [])
    observe(ROBOT, 1)
    observe('2001:db8:1:2::1', 3)
    observe('2001:db8:1:2::2', 3)
    await watch.flush()
    const [flag, ...more] = await world.flags('click_velocity')
    assert.equal([flag?.subject_id, flag && visits(flag), more], [link.id, [5, 6], []])
    assert.not.match(JSON.stringify(flag), /203\.0|2001:/)
    assert.is(flag?.evidence.creator_id, world.creator.userId)
  })

  it('accuses no creator of a crowd behind one carrier address', async ({ world }) => {
    const { platform, clock, link } = world
    const clicks = createClickRecorder(platform)
    const carrier = { address: '39.32.10.1', agent: BROWSER }
    const click = { linkId: link.id, tracked: true, kind: 'visit', ...carrier } as const
    const crowd = async (visits: number) => {
      for (let visit = 0; visit < visits; visit += 1)
        await clicks.record({ ...click, id: platform.ids.next(), createdAt: clock.now() })
      await clicks.idle()
    }
    await crowd(150)
    assert.equal(await world.flags('click_velocity'), [])
    clock.pass(5 * DAY)
    await world.watch()
    await crowd(150)
    assert.equal(await world.flags('click_velocity'), [], 'too few visits to expect a sale')
    for (let day = 0; day < 2; day += 1) {
      await crowd(200)
      clock.pass(DAY)
      await world.watch()
    }
    await crowd(150)
    assert.equal(await world.flags('click_velocity'), [], 'cash on delivery takes days')
    clock.pass(3 * DAY)
    await world.watch()
    // The key of the hashes is read again on the way.
    await crowd(20)
    const [flag, ...more] = await world.flags('click_velocity')
    const { data_center, sales } = flag?.evidence ?? {}
    assert.equal([flag?.subject_id, data_center, sales, more], [link.id, false, 0, []])
  })

  it('flags what two processes count together on PostgreSQL', async ({ world }) => {
    if (dialect === 'sqlite') return
    const { platform, clock, link } = world
    const watches = [new ClickWatch(platform), new ClickWatch({ ...platform })]
    const visit = async (times: number, visitor: string) => {
      for (const watch of watches) {
        for (let time = 0; time < times; time += 1)
          watch.observe({ visitor, linkId: link.id, at: clock.now(), address: ROBOT })
        await watch.flush()
      }
    }
    await visit(2, 'one')
    await visit(1, 'other')
    assert.equal(await world.flags('click_velocity'), [], 'four and two of five')
    await visit(1, 'one')
    const [flag, ...more] = await world.flags('click_velocity')
    assert.equal([flag?.subject_id, more], [link.id, []])
    assert.equal(flag?.evidence.visits_by_address_hash, { one: 5 })
  })

  it('forgets what is older than the window, and the key by which it hashed', async ({ world }) => {
    const { platform, clock, link } = world
    const watch = new ClickWatch(platform)
    const addresses = new AddressHashes()
    const visit = () => {
      const at = clock.now()
      watch.observe({ visitor: addresses.of(ROBOT, at), linkId: link.id, at, address: ROBOT })
    }
    const flaggedHash = async () => {
      for (let time = 0; time < 5; time += 1) visit()
      await watch.flush()
      const [flag] = await world.flags('click_velocity')
      return Object.keys((flag?.evidence.visits_by_address_hash ?? {}) as object)[0]
    }
    for (let time = 0; time < 20; time += 1) {
      visit()
      clock.pass(20_000)
    }
    await watch.flush()
    assert.equal(await world.flags('click_velocity'), [], 'three a minute')
    clock.pass(HOUR)
    const first = await flaggedHash()
    clock.pass(HOUR)
    assert.is(await flaggedHash(), first)
    clock.pass(DAY)
    assert.is.not(await flaggedHash(), first)
  })

  it('flags nothing when it is off, and no link that there is not', async ({ world }) => {
    const { platform, clock, link } = world
    const off = new ClickWatch({ ...platform, config: { ...platform.config, FLAG_CLICKS: 0 } })
    const on = new ClickWatch(platform)
    for (let time = 0; time < 20; time += 1) {
      off.observe({ visitor: 'one', linkId: link.id, at: clock.now(), address: ROBOT })
      on.observe({ visitor: 'one', linkId: platform.ids.next(), at: clock.now(), address: ROBOT })
    }
    await Promise.all([off.flush(), on.flush()])
    assert.equal(await world.flags('click_velocity'), [])
  })

  it('sees who follows a link, and leaves bots and look-aheads out', async ({ world }) => {
    const { platform, link } = world
    const clicks = createClickRecorder(platform)
    const server = await serverOver(platform, { clicks })
    const follow = async (headers: Record<string, string>, times: number) => {
      for (let time = 0; time < times; time += 1) {
        const url = `/go/${link.slug}`
        const answer = await server.inject({ method: 'GET', url, headers, remoteAddress: ROBOT })
        assert.is(answer.statusCode, 302)
      }
      await clicks.idle()
    }
    await follow({ 'user-agent': 'Googlebot/2.1' }, 6)
    await follow({ 'user-agent': BROWSER, 'sec-purpose': 'prefetch' }, 6)
    await follow({ 'user-agent': BROWSER }, 4)
    assert.equal(await world.flags('click_velocity'), [])
    await follow({ 'user-agent': BROWSER }, 1)
    assert.equal((await world.flags('click_velocity')).flatMap(visits), [5])
    await server.close()
  })

  it.run()
}
