// long

import { type RawBuilder, sql } from 'kysely'
import * as assert from 'uvu/assert'
import { runPayouts } from '../payouts/payout-run.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { IntegrityError } from '../platform/crypto/vault.ts'
import type { Tx } from '../platform/database/database.ts'
import { updateRows } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import { claimsForWebhook } from '../stores/webhook-claims.service.ts'
import { billingAccountOf } from '../users/sealed-accounts.service.ts'
import { marketSuites } from './testkit/market-suites.ts'
import {
  attemptsOf,
  brokenRows,
  closeOpenCycle,
  giveBillingAccount,
  giveDestination,
  type Marketplace,
  openFlagsOf,
  payoutOf,
  type Shop,
} from './testkit/marketplace.ts'
import { assertMapped, assertNone } from './testkit/pluck.ts'
import { proofDialects } from './testkit/proof-size.ts'
import { rowsOf } from './testkit/rows.ts'
import { removeGuards } from './testkit/tamper.ts'
import { DAY, HOUR } from './testkit/testbed.ts'

/** The attacker's own account, which the service has sealed for them. */
const THEIR_IBAN = 'PK24SCBL0000001171495101'
/** A second one, which they gave as the victim after taking over the victim's session. */
const TAKEOVER_IBAN = 'PK48MEZN0002010100987654'

interface World {
  market: Marketplace
  victim: Actor
  attacker: Actor
  shop: Shop
  attackerShop: Shop
}

type Attack = (world: World, tx: Tx) => RawBuilder<unknown> | Promise<unknown>

const SEALED = ['payout_destinations', 'billing_accounts', 'store_secrets'] as const
const TABLES = [...SEALED, 'stores', 'watermarks', 'flags'] as const

/** Statements of a database writer who has removed triggers, checks and unique indexes, but has no APP_KEY. */
const ON_DESTINATIONS: Record<string, Attack> = {
  'their sealed IBAN in the row of the victim': ({ victim, attacker }) => sql`
    update payout_destinations set iban_encrypted = (
      select iban_encrypted from payout_destinations where user_id = ${attacker.userId})
    where user_id = ${victim.userId}`,
  'their whole row given to the victim': ({ victim, attacker }) =>
    sql`update payout_destinations set user_id = ${victim.userId} where user_id = ${attacker.userId}`,
  'a copy of their row under a new id': ({ market, victim, attacker }) => sql`insert into payout_destinations
      (id, user_id, iban_encrypted, iban_fingerprint, iban_last4, account_title, effective_at, created_at, row_digest)
    select ${market.platform.ids.next()}, ${victim.userId}, iban_encrypted, iban_fingerprint, iban_last4, account_title,
      effective_at, created_at, row_digest
    from payout_destinations where user_id = ${attacker.userId}`,
  'their row under the id of the one that it replaces': async ({ victim, attacker }, tx) => {
    const removal = tx.deleteFrom('payout_destinations').where('user_id', '=', victim.userId)
    const { id } = await removal.returning('id').executeTakeFirstOrThrow()
    await sql`update payout_destinations set id = ${id}, user_id = ${victim.userId}
      where user_id = ${attacker.userId}`.execute(tx)
  },
  'the last characters of another IBAN': ({ victim }) =>
    sql`update payout_destinations set iban_last4 = '5101' where user_id = ${victim.userId}`,
  'another account title': ({ victim }) =>
    sql`update payout_destinations set account_title = 'A THIEF' where user_id = ${victim.userId}`,
}

/** Attacks of a merchant whose invoices another's account is to pay. */
const ON_BILLING_ACCOUNTS: Record<string, Attack> = {
  'the sealed account of another merchant in their own row': ({ shop, attackerShop }) => sql`
    update billing_accounts set account_encrypted = (
      select account_encrypted from billing_accounts where user_id = ${attackerShop.merchantId})
    where user_id = ${shop.merchantId}`,
  'the whole row of another merchant': ({ shop, attackerShop }) =>
    sql`update billing_accounts set user_id = ${shop.merchantId} where user_id = ${attackerShop.merchantId}`,
  'a copy of a row under a new id': ({ market, shop, attackerShop }) => sql`
    insert into billing_accounts (id, user_id, kind, account_encrypted, account_last4, created_at, row_digest)
    select ${market.platform.ids.next()}, ${shop.merchantId}, kind, account_encrypted, account_last4, created_at, row_digest
    from billing_accounts where user_id = ${attackerShop.merchantId}`,
  'the last characters of another account': ({ shop }) =>
    sql`update billing_accounts set account_last4 = '4567' where user_id = ${shop.merchantId}`,
  'another kind': ({ shop }) =>
    sql`update billing_accounts set kind = 'raast_id' where user_id = ${shop.merchantId}`,
}

const theirSecret = (column: string, { storeId }: Shop) =>
  sql`(select ${sql.ref(column)} from store_secrets where store_id = ${storeId})`

const ON_SECRETS: Record<string, Attack> = {
  'their sealed secret in the row of the victim': ({ shop, attackerShop }) => sql`
    update store_secrets set secret_encrypted = ${theirSecret('secret_encrypted', attackerShop)},
      fingerprint = ${theirSecret('fingerprint', attackerShop)} where store_id = ${shop.storeId}`,
  'their whole row given to the store of the victim': ({ shop, attackerShop }) =>
    sql`update store_secrets set store_id = ${shop.storeId} where store_id = ${attackerShop.storeId}`,
  'a copy of their row under a new id': ({ market, shop, attackerShop }) => sql`
    insert into store_secrets (id, store_id, secret_encrypted, fingerprint, valid_until, created_at)
    select ${market.platform.ids.next()}, ${shop.storeId}, secret_encrypted, fingerprint, valid_until, created_at
    from store_secrets where store_id = ${attackerShop.storeId}`,
  'their whole store given to the victim': ({ shop, attackerShop }) =>
    sql`update stores set merchant_id = ${shop.merchantId} where id = ${attackerShop.storeId}`,
  'the domain of the victim given to their store': async ({ shop, attackerShop }, tx) => {
    await tx.updateTable('stores').set({ removed_at: 1 }).where('id', '=', shop.storeId).execute()
    await sql`update stores set shop_domain = (select shop_domain from stores where id = ${shop.storeId})
      where id = ${attackerShop.storeId}`.execute(tx)
  },
  'a secret that is valid for longer': ({ shop }) =>
    sql`update store_secrets set valid_until = 9000000000000 where store_id = ${shop.storeId}`,
}

const BOTH_IN_PROOFS = { shared: true, dialects: proofDialects() }

for (const { it } of marketSuites<World>('a database writer without the key', BOTH_IN_PROOFS)) {
  it.before(async (world) => {
    const { market } = world
    const shop = await market.addShop()
    const victim = await market.addCreator('victim')
    const attacker = await market.addCreator('attacker', false)
    await giveDestination(market.platform, attacker.userId, THEIR_IBAN)
    const attackerShop = await market.addShop('attacker')
    await giveBillingAccount(market.platform, shop.merchantId, { iban: THEIR_IBAN })
    await giveBillingAccount(market.platform, attackerShop.merchantId, { raastId: '03001234567' })
    Object.assign(world, { shop, victim, attacker, attackerShop })
    await market.earn(shop, await market.addLink(shop, victim), 800_000)
    const { database } = market.bed.testDatabase
    await removeGuards(database)
    // The service raises its flags by way of this one.
    await sql`create unique index flags_one_open on flags (kind, subject_type, subject_id)
      where status = 'open'`.execute(database.writer)
  })

  /** Runs `work` and puts the rows back. */
  async function keepingRows({ market }: World, work: () => Promise<void>): Promise<void> {
    const { platform } = market
    const rows = new Map<string, unknown[]>()
    for (const table of TABLES)
      rows.set(table, await platform.database.reader.selectFrom(table).selectAll().execute())
    try {
      await work()
    } finally {
      platform.caches.drop('store')
      await platform.database.transaction(async (tx) => {
        for (const table of TABLES) {
          await tx.deleteFrom(table).execute()
          for (const row of rows.get(table) ?? [])
            await tx
              .insertInto(table)
              .values(row as Schema[typeof table])
              .execute()
        }
      })
    }
  }

  /** Makes the attack, then `work`, and puts the rows back. Only in between does verification find a breach of the invariant. */
  async function under(
    world: World,
    attack: Attack,
    invariant: string,
    work = async () => {},
  ): Promise<void> {
    const { platform } = world.market
    await keepingRows(world, async () => {
      await platform.database.transaction(async (tx) => {
        const made = attack(world, tx)
        await (made instanceof Promise ? made : made.execute(tx))
      })
      platform.caches.drop('store')
      await work()
      assert.is.not((await brokenRows(platform, invariant)).length, 0)
    })
    assert.equal(await brokenRows(platform, invariant), [])
  }

  /** Why the first payout that is due is not made; `undefined` if it is. */
  const whyWaiting = async ({ market }: World) => {
    const [outcome] = await runPayouts(market.platform, market.processor)
    return outcome?.kind === 'waits' ? outcome.why : undefined
  }

  const assertFlagged = async ({ market }: World, ...wanted: string[]) => {
    const flags = await openFlagsOf(market.platform)
    assertNone(wanted, (flag) => !flags.includes(flag))
  }

  const ibansPaid = ({ market }: World) =>
    market.processor.payouts.map(({ rest }) => (rest as { iban: string }).iban)

  for (const [what, attack] of Object.entries(ON_DESTINATIONS)) {
    it(`${what}: nothing is paid, it is flagged, and verification finds it`, async (world) => {
      const { market, victim } = world
      await under(world, attack, 'sealed-destinations', async () => {
        const outcomes = await runPayouts(market.platform, market.processor)
        assertMapped(outcomes, (one) => one.kind === 'waits' && one.why, ['destination_broken'])
        await market.drainUntilIdle()
        assert.equal(ibansPaid(world), [])
        await assertFlagged(world, `integrity_violation ${victim.userId}`)
      })
    })
  }

  it('who deletes the newest destination brings no former one back', async (world) => {
    const { market, victim } = world
    const deletion: Attack = () => sql`delete from payout_destinations
      where user_id = ${victim.userId} and effective_at > created_at`
    await keepingRows(world, async () => {
      await giveDestination(market.platform, victim.userId, TAKEOVER_IBAN)
      await under(world, deletion, 'rows-complete-payout-destinations', async () => {
        assert.is(await whyWaiting(world), 'destination_broken')
        await assertFlagged(world, 'integrity_violation payout_destinations')
      })
    })
  })

  it('who deletes a billing account is found', async (world) => {
    const deletion: Attack = ({ shop }) =>
      sql`delete from billing_accounts where user_id = ${shop.merchantId}`
    await under(world, deletion, 'rows-complete-billing-accounts')
  })

  for (const [what, attack] of Object.entries(ON_BILLING_ACCOUNTS)) {
    it(`${what}: the billing account does not open, and verification finds it`, async (world) => {
      const { market, shop } = world
      await under(world, attack, 'sealed-billing-accounts', async () => {
        const { reader } = market.platform.database
        const opening = billingAccountOf(market.platform, reader, shop.merchantId, market.clock.now())
        const opened = await opening.catch((error: unknown) => error)
        assert.instance(opened, IntegrityError)
      })
    })
  }

  for (const [what, attack] of Object.entries(ON_SECRETS)) {
    it(`${what}: it verifies no delivery, and verification finds it`, async (world) => {
      const { market, attackerShop } = world
      const isTheirs = ({ merchantId }: { merchantId: string }) => merchantId === attackerShop.merchantId
      const stores = await rowsOf(market.platform, 'stores')
      const domainOf = ({ storeId }: Shop) => stores.find(({ id }) => id === storeId)?.shop_domain ?? ''
      /** Who may deliver for a domain, and with which secrets. */
      const signers = async (domain: string) =>
        (await claimsForWebhook(market.platform, domain)).flatMap(({ merchantId, keys }) =>
          keys.map((key) => ({ merchantId, secret: key.export().toString() })),
        )
      const [their] = await signers(domainOf(attackerShop))
      assert.is(their?.merchantId, attackerShop.merchantId)
      await under(world, attack, 'sealed-store-secrets', async () => {
        for (const { shop_domain } of stores) {
          const found = (await signers(shop_domain)).filter(({ secret }) => secret === their?.secret)
          assert.equal(found, shop_domain === domainOf(attackerShop) ? found.filter(isTheirs) : [])
        }
        const flags = await openFlagsOf(market.platform)
        assert.ok(flags.some((flag) => flag.startsWith('integrity_violation ')))
      })
    })
  }

  it('cannot cut the delay of a replacement short, nor bring back one that was replaced', async (world) => {
    const { market, victim } = world
    const ofVictim = sql`where user_id = ${victim.userId} and effective_at > created_at and iban_last4 =`
    const cut: Attack = () =>
      sql`update payout_destinations set effective_at = created_at - 1 ${ofVictim} '7654'`
    const bringBack: Attack = () =>
      sql`update payout_destinations set created_at = created_at - ${2 * HOUR} ${ofVictim} '6702'`
    const waits = async () => assert.ok(await whyWaiting(world))
    await keepingRows(world, async () => {
      await giveDestination(market.platform, victim.userId, TAKEOVER_IBAN)
      await under(world, cut, 'sealed-destinations', waits)
      market.clock.pass(HOUR)
      await giveDestination(market.platform, victim.userId)
      market.clock.pass(2 * DAY)
      await under(world, bringBack, 'sealed-destinations', waits)
    })
  })

  it('cannot have a payout that is on its way sent elsewhere', async (world) => {
    const { market, victim, attacker } = world
    await giveDestination(market.platform, victim.userId, TAKEOVER_IBAN)
    market.clock.pass(HOUR)
    await giveDestination(market.platform, victim.userId)
    const [made] = await runPayouts(market.platform, market.processor)
    const payoutId = (made?.kind === 'paid_out' && made.payoutId) || ''
    const [attempt] = await attemptsOf(market.platform, payoutId)
    assert.ok(attempt)
    const destinations = await rowsOf(market.platform, 'payout_destinations')
    /** As the service would queue the call again. */
    const pointTo = (destinationId: string | undefined) => {
      const request = JSON.stringify({ destination_id: destinationId })
      const due = { state: 'waiting', next_try_at: market.clock.now(), tries: 0 } as const
      const change = { request, ...due, settled_at: null, unknown_at: null }
      return market.platform.database.transaction((tx) =>
        updateRows(tx, 'processor_attempts', { id: attempt.id }, change),
      )
    }
    const foreign = destinations.find((row) => row.user_id === attacker.userId)?.id
    const replaced = destinations.find((row) => row.iban_last4 === TAKEOVER_IBAN.slice(-4))?.id
    for (const destinationId of [foreign, replaced, market.platform.ids.next()]) {
      await pointTo(destinationId)
      await market.drainUntilIdle()
      const [now] = await attemptsOf(market.platform, payoutId)
      assert.is(now?.state, 'refused', now?.detail ?? '')
      assert.match(now?.detail ?? '', /^not sent: payout destination/)
    }
    await assertFlagged(world, `integrity_violation ${victim.userId}`, `processor_refusal ${payoutId}`)
    assert.equal(ibansPaid(world), [])
    const newest = destinations.filter((row) => row.user_id === victim.userId).at(-1)?.id
    await pointTo(newest)
    await market.drainUntilIdle()
    assert.equal(ibansPaid(world), [], 'a destination that waits for its delay')
    assert.match((await attemptsOf(market.platform, payoutId))[0]?.detail ?? '', /not come into effect/)
    await market.after(DAY)
    assert.equal(ibansPaid(world), ['PK36SCBL0000001123456702'])
    assert.is((await payoutOf(market.platform, payoutId)).state, 'submitted')
  })

  it('cannot have an invoice sent to another account', async (world) => {
    const { market, shop, victim } = world
    const { platform, processor } = market
    processor.needsBillingAccount = true
    const calls = processor.calls.length
    await market.order(shop, await market.addLink(shop, victim), 800_000)
    await market.drainUntilIdle()
    const cycleId = await closeOpenCycle(platform, shop)
    await sql`update billing_accounts set account_encrypted = account_encrypted || 'A'`.execute(
      market.bed.testDatabase.database.writer,
    )
    await market.drainUntilIdle()
    assert.is(processor.calls.length, calls)
    const [attempt] = await attemptsOf(platform, cycleId)
    assert.is(attempt?.state, 'refused')
    assert.match(attempt?.detail ?? '', /^not sent: billing account/)
    await assertFlagged(world, `integrity_violation ${shop.merchantId}`, `processor_refusal ${cycleId}`)
  })

  it.run()
}
