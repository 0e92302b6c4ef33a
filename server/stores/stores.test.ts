import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { setOfferStatus } from '../offers/offers.service.ts'
import { advisoryLock } from '../platform/database/database.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { addLiveOffer } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { addUser, outcomeOf, requestOf } from '../test/testkit/people.ts'
import { assertMapped, pluckAll } from '../test/testkit/pluck.ts'
import { auditOf, rowsOf } from '../test/testkit/rows.ts'
import { DAY, HOUR, type Testbed } from '../test/testkit/testbed.ts'
import { domainLock } from './store-events.service.ts'
import { storesRouter } from './stores.procedures.ts'
import { merchantHasStore } from './stores.service.ts'
import { claimsForWebhook } from './webhook-claims.service.ts'

const DOMAIN = 'kurta.myshopify.com'
const NEW = 'kurta-lahore.myshopify.com'

for (const { it } of marketSuites('stores')) {
  async function merchantOf({ platform }: Testbed) {
    const actor = await addUser(platform, 'merchant')
    return { actor, stores: storesRouter.createCaller(requestOf(platform, actor)) }
  }

  async function secretsAt({ platform }: Testbed, domain = DOMAIN) {
    const claims = await claimsForWebhook(platform, domain)
    return claims.flatMap(({ keys }) => keys.map((key) => key.export().toString()))
  }

  /** A merchant who has connected the domain with `secret-one`. */
  async function connected(bed: Testbed) {
    const merchant = await merchantOf(bed)
    const made = await merchant.stores.connect({ shop_domain: DOMAIN, webhook_secret: 'secret-one' })
    return { ...merchant, made, id: made.id }
  }

  it('connects a store by its plain host name, and never shows the secret', async ({ bed }) => {
    const { actor, stores } = await merchantOf(bed)
    const made = await stores.connect({ shop_domain: ` KURTA.MyShopify.com `, webhook_secret: 'secret-one' })
    const base = bed.platform.publicBaseUrl
    assert.equal(made, {
      id: made.id,
      platform: 'shopify',
      shop_domain: DOMAIN,
      status: 'waiting',
      webhook_url: `${base}/webhooks/store-sales`,
      script_url: `${base}/store.js`,
      script_tag: `<script src="${base}/store.js" async></script>`,
      last_event_at: null,
      last_refused_at: null,
      last_refusal: null,
      unreadable_7d: 0,
      tracked_30d: { cart: 0, landing: 0, line: 0, coupon: 0, none: 0 },
      created_at: made.created_at,
    })
    assert.equal((await stores.list({})).items, [made])
    assert.ok(await merchantHasStore(bed.platform.database.reader, actor.userId))
    assert.equal(await stores.get({ id: made.id }), made)
    const [found, ...others] = await claimsForWebhook(bed.platform, 'Kurta.myshopify.COM')
    assert.equal(others, [])
    assert.equal([found?.storeId, found?.merchantId], [made.id, actor.userId])
    assert.equal(await secretsAt(bed), ['secret-one'])
    assert.not.match(JSON.stringify(await rowsOf(bed.platform, 'store_secrets')), 'secret-one')
  })

  it('has the script keep references for the longest window of the live offers', async ({ bed }) => {
    const { actor, stores, id } = await connected(bed)
    const daysOf = async () => /data-days="(\d+)"/.exec((await stores.get({ id })).script_tag)?.[1]
    const windows = [14, 90, 365]
    const offers = []
    for (const attribution_window_days of windows) {
      assert.is(await daysOf(), { 90: undefined, 365: '90' }[attribution_window_days])
      offers.push(await addLiveOffer(bed.platform, actor, { attribution_window_days }))
    }
    assert.is(await daysOf(), '365')
    await setOfferStatus(bed.platform, actor.userId, offers[2]?.id ?? '', 'paused')
    assert.is(await daysOf(), '90')
  })

  it('connects the shop of any address that a merchant pastes', async ({ bed }) => {
    const { stores } = await merchantOf(bed)
    for (const shop_domain of [
      'https://Kurta.myshopify.com/',
      'http://kurta.myshopify.com',
      '//kurta.myshopify.com/admin',
      'kurta.myshopify.com/products/lawn?variant=1#top',
      'https://kurta.myshopify.com:443/',
      '\u2066kurta.myshopify.com\u2069',
      '\tkurta.\u200bmyshopify.com.\n',
      '<https://kurta.myshopify.com>',
      'https://admin.shopify.com/store/kurta',
      'admin.shopify.com/store/KURTA/settings/domains?x=1',
    ]) {
      const made = await stores.connect({ shop_domain, webhook_secret: 'secret-one' })
      assert.is(made.shop_domain, DOMAIN, shop_domain)
      await stores.remove({ id: made.id })
    }
  })

  it('refuses what is no shop of Shopify, with the way to its name', async ({ bed }) => {
    const { stores } = await merchantOf(bed)
    const own = 'chenab-lawn.pk https://www.kurta.pk/ shop 1.2.3.4 myshopify.com'
    const odd =
      '-a.myshopify.com a-.myshopify.com a.b.myshopify.com a_b.myshopify.com a.myshopify.com.evil.pk'
    const other = 'admin.shopify.com/store/ admin.shopify.com/store/a_b x@a.myshopify.com a.myshopify.com:80'
    const long = `${'a'.repeat(64)}.myshopify.com`
    for (const shop_domain of [...`${own} ${odd} ${other}`.split(' '), long, '']) {
      const connecting = stores.connect({ shop_domain, webhook_secret: 'secret-one' })
      const refusal = await connecting.catch((error) => error)
      assert.is(refusal.cause?.code, 'validation_failed', shop_domain)
      assert.match(JSON.stringify(refusal.cause), /Settings → Domains/, shop_domain)
    }
    for (const webhook_secret of ['short', 'with a space', 'x'.repeat(257)]) {
      assert.is(await outcomeOf(stores.connect({ shop_domain: DOMAIN, webhook_secret })), 'validation_failed')
    }
    assert.equal(await claimsForWebhook(bed.platform, 'no host\0name'), [])
  })

  it('lets a secret belong to one store only, and a merchant connect a domain once', async ({ bed }) => {
    const first = await connected(bed)
    const second = await merchantOf(bed)
    const again = { shop_domain: DOMAIN, webhook_secret: 'secret-two' }
    assert.is(await outcomeOf(first.stores.connect(again)), 'store_taken')
    const shared = { shop_domain: 'other.myshopify.com', webhook_secret: 'secret-one' }
    for (const { stores } of [first, second])
      assert.is(await outcomeOf(stores.connect(shared)), 'secret_taken')
  })

  it('lets one win if one domain, or one secret by several, is connected at once', async ({ bed }) => {
    const callers = await Promise.all(Array.from({ length: 6 }, () => merchantOf(bed)))
    const first = await merchantOf(bed)
    const domains = await Promise.all(
      callers.map((_, n) =>
        outcomeOf(first.stores.connect({ shop_domain: DOMAIN, webhook_secret: `secret-${n}-xx` })),
      ),
    )
    assert.equal(domains.sort(), ['ok', ...Array(5).fill('store_taken')])
    const secrets = await Promise.all(
      callers.map(({ stores }, n) =>
        outcomeOf(stores.connect({ shop_domain: `s${n}.myshopify.com`, webhook_secret: 'one-for-all' })),
      ),
    )
    assert.equal(secrets.sort(), ['ok', ...Array(5).fill('secret_taken')])
  })

  it('keeps the former secret valid for 24 hours, and takes it back', async ({ bed }) => {
    const { stores, id } = await connected(bed)
    assert.equal(await secretsAt(bed), ['secret-one'])
    for (const _ of ['new', 'known']) {
      await stores.rotateSecret({ id, webhook_secret: 'secret-two' })
      assert.equal(await secretsAt(bed), ['secret-two', 'secret-one'])
    }
    await stores.rotateSecret({ id, webhook_secret: 'secret-one' })
    assert.equal(await secretsAt(bed), ['secret-one', 'secret-two'])
    bed.clock.pass(DAY - 1)
    assert.equal(await secretsAt(bed), ['secret-one', 'secret-two'])
    bed.clock.pass(1)
    assert.equal(await secretsAt(bed), ['secret-one'])
  })

  it('ends the former secrets at once with revoke_former', async ({ bed }) => {
    const { stores, id } = await connected(bed)
    const other = await merchantOf(bed)
    const rotations: [secret: string, revoke_former: boolean | undefined, valid: string[]][] = [
      ['secret-two', true, ['secret-two']],
      ['secret-three', undefined, ['secret-three', 'secret-two']],
      ['secret-four', false, ['secret-four', 'secret-three', 'secret-two']],
      // With the secret that is present already, the former ones end anyway.
      ['secret-four', true, ['secret-four']],
      ['secret-five', undefined, ['secret-five', 'secret-four']],
      // A former one that becomes the present one again survives.
      ['secret-four', true, ['secret-four']],
    ]
    for (const [webhook_secret, revoke_former, valid] of rotations) {
      await stores.rotateSecret({ id, webhook_secret, revoke_former })
      assert.equal(await secretsAt(bed), valid)
    }
    const wanted = { shop_domain: 'other.myshopify.com', webhook_secret: 'secret-five' }
    assert.is(await outcomeOf(other.stores.connect(wanted)), 'ok')
  })

  it('records who connected, rotated and removed a store, without its secrets', async ({ bed }) => {
    const { actor, stores, id } = await connected(bed)
    for (const _ of ['new', 'known']) await stores.rotateSecret({ id, webhook_secret: 'secret-two' })
    await stores.remove({ id })
    await stores.connect({ shop_domain: DOMAIN, webhook_secret: 'secret-three' })
    const audit = await auditOf(bed.platform, { subject_id: id })
    assert.ok(audit.every((entry) => entry.actor === actor.userId))
    const state = { merchant_id: actor.userId, shop_domain: DOMAIN, in_use: true, released: false }
    const removed = { ...state, in_use: false }
    const rotated = { ...state, former_secrets: 1, replaced: true, revoked_former: false }
    assert.equal(pluckAll(audit, 'action', 'before', 'after'), [
      ['store.connect', null, state],
      ['store.rotate_secret', { ...state, former_secrets: 0 }, rotated],
      ['store.remove', state, { ...removed, offers_paused: 0 }],
      ['store.connect', removed, state],
    ])
    assert.not.match(JSON.stringify(audit), /secret-(one|two|three)/)
  })

  it('clears an expired former secret out of the way, but no valid one', async ({ bed }) => {
    const { id, ...first } = await connected(bed)
    const second = await merchantOf(bed)
    await first.stores.rotateSecret({ id, webhook_secret: 'secret-two' })
    bed.clock.pass(23 * HOUR)
    const wanted = { shop_domain: 'other.myshopify.com', webhook_secret: 'secret-one' }
    assert.is(await outcomeOf(second.stores.connect(wanted)), 'secret_taken')
    bed.clock.pass(HOUR)
    assert.is(await outcomeOf(second.stores.connect(wanted)), 'ok')
  })

  it('keeps a few secrets, however often they are rotated, also at once', async ({ bed }) => {
    const { stores, id } = await connected(bed)
    for (let n = 1; n <= 6; n += 1) await stores.rotateSecret({ id, webhook_secret: `secret-${n}-xx` })
    assert.equal(await secretsAt(bed), ['secret-6-xx', 'secret-5-xx', 'secret-4-xx', 'secret-3-xx'])
    const rotate = (n: string) => stores.rotateSecret({ id, webhook_secret: `secret-${n}-xx` })
    await Promise.all(['a', 'b', 'c'].map(rotate))
    const rows = await rowsOf(bed.platform, 'store_secrets')
    assert.equal([rows.length, rows.filter((row) => row.valid_until === null).length], [4, 1])
  })

  it('removes a store with its secrets, and restores the row for the same merchant, also beside another claim', async ({
    bed,
  }) => {
    const { made, ...first } = await connected(bed)
    const second = await merchantOf(bed)
    assert.equal(await secretsAt(bed), ['secret-one'])
    await first.stores.remove({ id: made.id })
    assert.is(await outcomeOf(first.stores.remove({ id: made.id })), 'not_found')
    assert.equal(await secretsAt(bed), [])
    assert.not.ok(await merchantHasStore(bed.platform.database.reader, first.actor.userId))
    const others = await second.stores.connect({ shop_domain: DOMAIN, webhook_secret: 'secret-one' })
    assert.is.not(others.id, made.id)
    const back = await first.stores.connect({ shop_domain: DOMAIN, webhook_secret: 'secret-two' })
    assert.equal(back, made)
    assert.equal((await secretsAt(bed)).sort(), ['secret-one', 'secret-two'])
  })

  it('pages through stores, newest first, and refuses a cursor of its caller making', async ({ bed }) => {
    const { stores } = await merchantOf(bed)
    for (let n = 0; n < 5; n += 1) {
      await stores.connect({ shop_domain: `s${n}.myshopify.com`, webhook_secret: `secret-${n}-xx` })
    }
    const first = await stores.list({ limit: 3 })
    const rest = await stores.list({ limit: 3, cursor: first.next_cursor ?? undefined })
    assert.is(rest.next_cursor, null)
    const domains = [...first.items, ...rest.items].map((store) => store.shop_domain.slice(0, 2))
    assert.equal(domains, ['s4', 's3', 's2', 's1', 's0'])
    assert.is(await outcomeOf(stores.list({ cursor: 'nonsense' })), 'validation_failed')
  })

  it('moves a claim to the new name of its shop, with its secrets', async ({ bed }) => {
    const { actor, stores, id } = await connected(bed)
    await stores.rotateSecret({ id, webhook_secret: 'secret-two' })
    const moved = await stores.rotateSecret({ id, shop_domain: NEW })
    assert.equal([moved.id, moved.shop_domain, moved.status], [id, NEW, 'waiting'])
    assert.equal((await secretsAt(bed, NEW)).sort(), ['secret-one', 'secret-two'])
    assert.equal((await secretsAt(bed)).sort(), ['secret-one', 'secret-two'], 'under the former name too')
    const both = await stores.rotateSecret({ id, shop_domain: DOMAIN, webhook_secret: 'secret-three' })
    assert.is(both.shop_domain, DOMAIN)
    assert.is((await secretsAt(bed))[0], 'secret-three')
    await stores.rotateSecret({ id, shop_domain: DOMAIN })
    const moves = await auditOf(bed.platform, { subject_id: id, action: 'store.move' })
    assertMapped(moves, ({ actor: by, before, after }) => [by, before.shop_domain, after.shop_domain], [
      [actor.userId, DOMAIN, NEW],
      [actor.userId, NEW, DOMAIN],
    ])
  })

  it('goes on with deliveries under the former name of a moved claim, after the claims on that name', async ({
    bed,
  }) => {
    const { stores, id } = await connected(bed)
    assert.equal(await secretsAt(bed), ['secret-one'])
    await stores.rotateSecret({ id, shop_domain: NEW })
    await stores.rotateSecret({ id, webhook_secret: 'secret-two' })
    assert.equal(await secretsAt(bed), ['secret-two', 'secret-one'], 'what was cached is gone')
    const other = await merchantOf(bed)
    const squatter = await other.stores.connect({ shop_domain: DOMAIN, webhook_secret: 'secret-of-other' })
    assert.equal(await secretsAt(bed), ['secret-of-other', 'secret-two', 'secret-one'])
    assert.equal(await secretsAt(bed, NEW), ['secret-two', 'secret-one'])
    await other.stores.remove({ id: squatter.id })
    await stores.remove({ id })
    assert.equal(await secretsAt(bed), [])
    assert.equal(await secretsAt(bed, NEW), [])
  })

  it('moves a claim and gives it a new secret together, or does neither', async ({ bed }) => {
    const { stores, id } = await connected(bed)
    const other = await merchantOf(bed)
    await other.stores.connect({ shop_domain: 'other.myshopify.com', webhook_secret: 'secret-of-other' })
    const taken = { id, shop_domain: NEW, webhook_secret: 'secret-of-other' }
    assert.is(await outcomeOf(stores.rotateSecret(taken)), 'secret_taken')
    assert.is((await stores.get({ id })).shop_domain, DOMAIN)
    assert.equal(await secretsAt(bed), ['secret-one'])
    await stores.connect({ shop_domain: NEW, webhook_secret: 'secret-new' })
    const held = { id, shop_domain: NEW, webhook_secret: 'secret-three' }
    assert.is(await outcomeOf(stores.rotateSecret(held)), 'store_taken')
    assert.equal(await secretsAt(bed), ['secret-one'])
  })

  it('locks the domain before the claim that moves to it, as a further claim does', async ({ bed }) => {
    const { database } = bed.platform
    if (database.dialect === 'sqlite') return
    const { stores, id } = await connected(bed)
    const waiting = sql`select from pg_locks where not granted and locktype = 'advisory'
      and database = (select oid from pg_database where datname = current_database())`
    const [locked, waited] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let tries = 0
    const holding = database.transaction(async (tx) => {
      tries += 1
      await advisoryLock(tx, domainLock('new.myshopify.com'))
      locked.resolve()
      await waited.promise
      await sql`select id from stores where id = ${id} for update nowait`.execute(tx)
    })
    await locked.promise
    const moving = stores.rotateSecret({ id, shop_domain: 'new.myshopify.com' })
    await eventually(async () => (await waiting.execute(database.reader)).rows.length === 1)
    waited.resolve()
    await holding
    assert.is((await moving).shop_domain, 'new.myshopify.com')
    assert.is(tries, 1, 'the claim was free')
  })

  it('moves no claim onto an existing one or without a change', async ({ bed }) => {
    const { stores, id } = await connected(bed)
    const shop_domain = 'second.myshopify.com'
    const second = await stores.connect({ shop_domain, webhook_secret: 'secret-2nd' })
    assert.is(await outcomeOf(stores.rotateSecret({ id, shop_domain })), 'store_taken')
    const without = { shop_domain: 'third.myshopify.com', revoke_former: true }
    for (const odd of [{}, { revoke_former: true }, without])
      assert.is(await outcomeOf(stores.rotateSecret({ id, ...odd })), 'validation_failed')
    await stores.remove({ id: second.id })
    assert.is((await stores.rotateSecret({ id, shop_domain })).id, id)
    const again = stores.connect({ shop_domain, webhook_secret: 'secret-3rd' })
    assert.is(await outcomeOf(again), 'store_taken')
  })

  it.run()
}
