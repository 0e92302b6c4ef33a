// long
import { sql } from 'kysely'
import { v7 } from 'uuid'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { creditGranted } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { SettingError } from '../platform/config.ts'
import { checkAppKey, readKeyMark } from '../platform/crypto/key-mark.ts'
import { createAppKeys } from '../platform/crypto/key-ring.ts'
import { renewedTables } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { connectStore, rotateSecret } from '../stores/stores.service.ts'
import { claimsForWebhook } from '../stores/webhook-claims.service.ts'
import { type FilledMarket, openFilledMarket } from '../test/testkit/filled-market.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import {
  attemptsOf,
  brokenInvariants,
  giveBillingAccount,
  giveDestination,
  openFlagsOf,
  payoutOf,
} from '../test/testkit/marketplace.ts'
import { addUser, changeUser, outcomeOf } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { messageOf, rejectionOf } from '../test/testkit/rejection.ts'
import { rowOf, rowsOf } from '../test/testkit/rows.ts'
import { MINUTE, TESTBED_KEY, withKeys } from '../test/testkit/testbed.ts'
import { billingAccountOf } from '../users/sealed-accounts.service.ts'
import { watchIdentities } from '../watches/identity-watch.service.ts'
import { type Rotation, rotateKeys } from './rotate-keys.ts'

const NEW_KEY = Buffer.alloc(32, 42)
const DOMAIN = 'kurta.myshopify.com'

const rotate = (platform: Platform, dryRun = false) => rotateKeys(platform, { dryRun, actor: 'operator' })

const sealedBreaches = async (platform: Platform) =>
  Object.entries(await brokenInvariants(platform)).flatMap(([name, rows]) =>
    name.startsWith('sealed-') ? rows : [],
  )

const brokenChecks = async (platform: Platform) => Object.keys(await brokenInvariants(platform))

const retiredKeys = async (platform: Platform) =>
  (await rowsOf(platform, 'ledger_seals', {}, 'position')).flatMap(({ retires }) => retires ?? [])

const resealedIn = ({ tables }: Rotation) => tables.map(({ resealed }) => resealed)

async function sealedRows(platform: Platform) {
  const destinations = await rowsOf(platform, 'payout_destinations')
  const secrets = await rowsOf(platform, 'store_secrets')
  const mailboxes = await rowsOf(platform, 'mailboxes', {}, 'user_id')
  return { destinations, secrets, mailboxes }
}

async function countDigests({ database }: Platform): Promise<number> {
  const counts = renewedTables().map(async (table) => {
    const { rows } = await sql`select row_digest from ${sql.table(table)}`.execute(database.reader)
    return rows.length
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

const auditsOf = (platform: Platform) => rowsOf(platform, 'audit_entries', { action: 'keys.rotate' })

/** With the new key, while the former one still opens what it has sealed. */
const withBoth = (platform: Platform) => withKeys(platform, createAppKeys(NEW_KEY, [TESTBED_KEY]))
const withNew = (platform: Platform) => withKeys(platform, createAppKeys(NEW_KEY))

const secretsFor = async (platform: Platform, domain = DOMAIN) =>
  (await claimsForWebhook(platform, domain)).flatMap(({ keys }) => keys.map((key) => key.export().toString()))

for (const dialect of proofDialects()) {
  const filled = suite<{ filled: FilledMarket; platform: Platform; domain: string }>(`keys on ${dialect}`)

  filled.before.each(async (context) => {
    context.filled = await openFilledMarket(dialect)
    const { market } = context.filled
    context.platform = market.platform
    market.clock.pass(MINUTE)
    while (await watchIdentities(market.platform)) {}
    context.domain = (await rowOf(market.platform, 'stores')).shop_domain
  })
  filled.after.each((context) => context.filled.close())

  filled('that are rotated leave every value bound to its row and under the new key', async (context) => {
    const { platform, domain } = context
    const before = await sealedRows(platform)
    assert.ok(before.destinations.length > 0 && before.secrets.length > 0 && before.mailboxes.length > 0)
    assert.equal(await sealedBreaches(platform), [])
    const secrets = await secretsFor(platform, domain)
    assert.is(secrets.length, 1)

    const both = withBoth(platform)
    const digests = await countDigests(platform)
    const all = [before.destinations.length, 0, 0, before.secrets.length, 0, before.mailboxes.length, digests]
    assert.equal(resealedIn(await rotate(both, true)), all)
    assert.equal(await sealedRows(platform), before, 'a dry run writes nothing')
    assert.equal(await auditsOf(platform), [])

    const rotation = await rotate(both)
    assert.equal([resealedIn(rotation), rotation.left], [all, []])
    const after = await sealedRows(platform)
    for (const [index, row] of after.destinations.entries()) {
      const { iban_encrypted, iban_fingerprint, row_digest } = row
      const former = before.destinations[index]
      assert.match(iban_encrypted, new RegExp(`^v2\\.${both.keys.current.id}\\.`))
      assert.is.not(iban_fingerprint, former?.iban_fingerprint)
      assert.is.not(row_digest, former?.row_digest)
      assert.equal(row, { ...former, iban_encrypted, iban_fingerprint, row_digest })
    }
    const onlyNew = withNew(platform)
    assert.equal(await readKeyMark(platform.database.reader, onlyNew.vault), 'current')
    assert.equal(await sealedBreaches(onlyNew), [])
    onlyNew.caches.drop('store')
    assert.equal(await secretsFor(onlyNew, domain), secrets)
    assert.equal(pluck(await auditsOf(platform), 'subject_id'), [both.keys.current.id])

    assert.equal(resealedIn(await rotate(onlyNew)), [0, 0, 0, 0, 0, 0, 0])
    assert.is((await auditsOf(platform)).length, 1, 'nothing to do leaves no row')
    assert.instance(await rejectionOf(rotate(platform)), Refusal)
  })

  filled('that are rotated leave values that were copied or changed, and name them', async (context) => {
    const { platform } = context
    const { destinations, secrets } = await sealedRows(platform)
    const [victim, thief] = destinations
    const [secret] = secrets
    assert.ok(victim && thief && secret)
    const { iban_encrypted, iban_fingerprint } = thief
    await platform.database.transaction(async (tx) => {
      const copied = tx.updateTable('payout_destinations').set({ iban_encrypted, iban_fingerprint })
      await copied.where('id', '=', victim.id).execute()
      const moved = tx.updateTable('store_secrets').set({ secret_encrypted: iban_encrypted })
      await moved.where('id', '=', secret.id).execute()
    })
    const both = withBoth(platform)
    const { left } = await rotate(both)
    assert.equal(left.map(({ id }) => id).sort(), [victim.id, secret.id].sort())
    assert.equal((await sealedBreaches(both)).length, 2, 'they are still refused')
  })

  filled('can be broken off anywhere and rotated again', async ({ platform }) => {
    const both = withBoth(platform)
    const stopAt = (stop: string) => {
      const onProgress = (table: string) => {
        if (table === stop) throw new Error('broken off')
      }
      return messageOf(rotateKeys(both, { dryRun: false, actor: 'operator', onProgress }))
    }
    const retired = [platform.keys.current.id]
    assert.equal((await rotate(both, true)).retired, retired)
    assert.equal(await retiredKeys(platform), [], 'a dry run retires nothing')
    for (const table of ['payout_destinations', 'store_secrets', 'mailboxes']) {
      assert.is(await stopAt(table), 'broken off')
      assert.equal(await retiredKeys(platform), retired, 'the journal is sealed first, and once')
      assert.equal(await brokenChecks(both), [])
      assert.is(await readKeyMark(platform.database.reader, both.vault), 'former')
    }
    const rotation = await rotate(both)
    assert.equal(resealedIn(rotation).slice(0, -1), [0, 0, 0, 0, 0, 0])
    assert.equal([rotation.left, rotation.retired], [[], []])
    assert.is((await auditsOf(platform)).length, 1)
    assert.equal(await brokenChecks(both), [])
    assert.equal(await sealedBreaches(withNew(platform)), [])
  })

  filled('do not retire the next key, which is in APP_KEYS_FORMER before its use', async ({ platform }) => {
    const ahead = withKeys(platform, createAppKeys(TESTBED_KEY, [NEW_KEY]))
    assert.equal((await rotate(ahead)).retired, [])
    assert.equal(await retiredKeys(platform), [])
    const replaced = withBoth(platform)
    assert.equal((await rotate(replaced)).retired, [platform.keys.current.id])
    assert.equal(await brokenChecks(replaced), [])
    assert.instance(await rejectionOf(rotate(ahead)), SettingError, 'no way back')
  })

  filled.run()
}

for (const { it } of marketSuites('keys of a marketplace')) {
  it('are retired also when they have made nothing but the mark', async ({ market }) => {
    const { platform } = market
    await checkAppKey(platform.database, platform.vault)
    const both = withBoth(platform)
    assert.equal((await rotate(both)).retired, [platform.keys.current.id])
    assert.equal(await brokenChecks(both), [])
    const retired = /^sealed with the key [0-9a-f]{8}, which is neither APP_KEY nor in APP_KEYS_FORMER/
    assert.match(await messageOf(addUser(platform, 'merchant')), retired)
    const { userId } = await addUser(both, 'merchant')
    const credit = creditGranted({ creditId: v7(), merchantId: userId, amount: 100 })
    const write = platform.database.transaction((tx) =>
      writeEntries(platform, tx, [credit], market.clock.now()),
    )
    assert.match(await messageOf(write), /made with a key that is in use/)
  })

  it('are named where they are missing, and nothing is lost meanwhile', async ({ market }) => {
    const before = market.platform
    await checkAppKey(before.database, before.vault)
    const shop = await market.addShop()
    const creator = await market.addCreator()
    await market.earn(shop, await market.addLink(shop, creator), 800_000)
    const [made] = await runPayouts(before, market.processor)
    const payoutId = (made?.kind === 'paid_out' && made.payoutId) || ''

    const both = withBoth(before)
    assert.equal((await rotate(both)).left, [])
    const domain = (await rowOf(before, 'stores')).shop_domain
    before.caches.drop('store')
    const refused = await rejectionOf(claimsForWebhook(before, domain))
    assert.instance(refused, Refusal)
    assert.equal([(refused as Refusal).code, (refused as Refusal).retryAfter], ['unavailable', 60])
    await market.drainUntilIdle()
    const [attempt] = await attemptsOf(before, payoutId)
    assert.is(attempt?.state, 'waiting')
    assert.match(attempt?.detail ?? '', new RegExp(`key ${both.keys.current.id}.*APP_KEYS_FORMER`))
    assert.equal(await openFlagsOf(before), [])

    Object.assign(before, { database: both.database, keys: both.keys, vault: both.vault })
    assert.is((await secretsFor(before, domain)).length, 1)
    await market.after(MINUTE)
    assert.is((await payoutOf(before, payoutId)).state, 'submitted')
    await market.verify()
  })

  it('keep secrets, bank accounts and mailboxes comparable meanwhile and afterwards', async ({ market }) => {
    const { clock } = market
    const platform = { ...market.platform, ids: { next: () => v7({ msecs: clock.now() }) } }
    const one = await addUser(platform, 'merchant')
    const two = await addUser(platform, 'merchant')
    const [first, second] = [await addUser(platform, 'creator'), await addUser(platform, 'creator')]
    const fields = { shop_domain: DOMAIN, webhook_secret: 'secret-one' }
    const store = await connectStore(platform, one.userId, fields)
    await giveDestination(platform, first.userId)
    await giveBillingAccount(platform, one.userId)
    await changeUser(platform, one.userId, { email: 'a.khan@gmail.com' })
    clock.pass(MINUTE)
    while (await watchIdentities(platform)) {}

    const both = withBoth(platform)
    const connect = (by: Platform) =>
      outcomeOf(connectStore(by, two.userId, { ...fields, shop_domain: 'other.myshopify.com' }))
    assert.is(await connect(both), 'secret_taken')
    await rotateSecret(both, one.userId, store.id, { secret: 'secret-two' })
    assert.equal(await secretsFor(both), ['secret-two', 'secret-one'])
    assert.is(await connect(both), 'secret_taken')
    await giveDestination(both, second.userId)
    const creator = await addUser(both, 'creator')
    await changeUser(both, creator.userId, { email: 'akhan+2@googlemail.com' })
    clock.pass(MINUTE)
    while (await watchIdentities(both)) {}
    const shared = [`shared_iban ${second.userId}`, `shared_mailbox ${creator.userId}`]
    assert.equal(await openFlagsOf(platform), shared)

    await rotate(both)
    const onlyNew = withNew(platform)
    assert.is(await connect(onlyNew), 'secret_taken')
    const account = await billingAccountOf(onlyNew, platform.database.reader, one.userId, clock.now())
    assert.equal(account, { iban: 'PK36SCBL0000001123456702' })
    const { destinations, mailboxes } = await sealedRows(platform)
    assert.is(new Set(destinations.map((row) => row.iban_fingerprint)).size, 1)
    assert.is(new Set(mailboxes.map((row) => row.fingerprint)).size, mailboxes.length - 1)
    assert.equal(await sealedBreaches(onlyNew), [])
  })

  it.run()
}
