import * as assert from 'uvu/assert'
import { rotateKeys } from '../jobs/rotate-keys.ts'
import { checkAppKey } from '../platform/crypto/key-mark.ts'
import { createAppKeys } from '../platform/crypto/key-ring.ts'
import { sha256 } from '../platform/crypto/vault.ts'
import type { Platform } from '../platform/platform.ts'
import {
  addCredit,
  cutOffCredit,
  entriesOf,
  forgeCredit,
  rehashLast,
  stripKeys,
} from '../test/testkit/journal-attacks.ts'
import { addTrade, marketSuites } from '../test/testkit/market-suites.ts'
import { brokenInvariants, type Trade } from '../test/testkit/marketplace.ts'
import { pluckAll } from '../test/testkit/pluck.ts'
import { removeGuards } from '../test/testkit/tamper.ts'
import { withKeys } from '../test/testkit/testbed.ts'
import { describeKeys } from '../verification/chain.ts'
import { verifyBooks } from '../verification/verify-books.ts'
import { keyIdOf } from './chain.rule.ts'
import { journalKeys } from './journal-keys.ts'
import { lastSeal, refuseRetiredKey, sealForKeyRotation, sealLedger } from './seals/seals.service.ts'

const faultNames = async (platform: Platform) => Object.keys(await brokenInvariants(platform))

/** The part of a start that concerns keys. */
async function start(platform: Platform) {
  await checkAppKey(platform.database, platform.vault)
  await refuseRetiredKey(platform)
}

/** The same services with other keys. */
function withFilledKeys(platform: Platform, current: number, ...former: number[]): Platform {
  const [key, ...older] = [current, ...former].map((fill) => Buffer.alloc(32, fill))
  const keys = createAppKeys(key as Buffer, older)
  return withKeys(platform, keys)
}

/** The testbed's key, and others. */
const [OURS, NEXT, FOREIGN] = [7, 8, 9]

for (const { it } of marketSuites<Trade>('a hostile database writer')) {
  it.before.each(({ platform }) => start(platform))
  it.before.each(addTrade)
  it.before.each(async ({ market, platform, shop, link }) => {
    await market.sell(shop, link, 400_000)
    await sealLedger(platform)
  })

  it('who appends a credit with a plain hash, as once, is found', async ({ market, platform, shop }) => {
    const { database } = market.bed.testDatabase
    const { writer } = database
    await removeGuards(database)
    await addCredit(platform, shop.merchantId)
    const { mac } = await writer.selectFrom('ledger_heads').select('mac').executeTakeFirstOrThrow()
    for (const forged of [null, mac]) {
      const id = await rehashLast(writer, shop.merchantId, sha256, forged)
      const faults = await brokenInvariants(platform)
      assert.equal(faults['chain-unbroken'], [`credit_granted entry ${id}`])
      assert.equal(Object.keys(faults), ['chain-unbroken', 'heads-authentic'])
    }
  })

  it('who appends a credit with a key of their own is found', async ({ market, platform, shop }) => {
    const { database } = market.bed.testDatabase
    const { writer } = database
    await removeGuards(database)
    const foreign = withFilledKeys(platform, FOREIGN)
    await forgeCredit(writer, foreign, shop.merchantId)
    const key = [`key ${foreign.keys.current.id}`]
    const rows = {
      'rows-authentic-credits': key,
      'rows-authentic-audit-entries': key,
      'rows-complete-audit-entries': ['audit_entries'],
    }
    assert.equal(await brokenInvariants(platform), { 'keys-at-hand': key, ...rows })
    const ours = platform.keys.current.id
    const posing = (text: string) => `${ours}.${sha256(text)}`
    const id = await rehashLast(writer, shop.merchantId, posing, posing('head'))
    assert.equal(await brokenInvariants(platform), {
      'chain-unbroken': [`credit_granted entry ${id}`],
      'heads-authentic': [`ledger ${shop.merchantId}`],
      ...rows,
    })
  })

  it('who cuts off the last entry with all its rows is found', async ({ market, platform, shop }) => {
    const { database } = market.bed.testDatabase
    const { writer } = database
    await removeGuards(database)
    for (const sealed of [false, true]) {
      await addCredit(platform, shop.merchantId)
      if (sealed) await sealLedger(platform)
      await cutOffCredit(writer, shop.merchantId)
      assert.equal(await faultNames(platform), [
        'heads-authentic',
        ...(sealed ? ['seals-hold'] : []),
        'rows-complete-audit-entries',
      ])
    }
  })

  it('who makes a keyed journal look unkeyed is found, also after a start', async (context) => {
    const { market, platform, shop, link } = context
    const { database } = market.bed.testDatabase
    const { writer } = database
    await market.sell(shop, link, 400_000)
    await removeGuards(database)
    await stripKeys(writer)
    for (const mark of ['kept', 'removed']) {
      if (mark === 'removed') await writer.deleteFrom('watermarks').where('name', '=', 'app_key').execute()
      await start(platform)
      await sealLedger(platform)
      assert.equal(
        await faultNames(platform),
        ['chain-unbroken', 'heads-authentic', 'rows-complete-ledger-seals'],
        mark,
      )
    }
  })

  it('finds a rotated journal in order under the new key; the former one still verifies', async ({
    market,
    platform,
    shop,
  }) => {
    const rotated = withFilledKeys(platform, NEXT, OURS)
    market.clock.pass(1000)
    const { retired, left } = await rotateKeys(rotated, { dryRun: false, actor: 'operator' })
    assert.equal([retired, left], [[platform.keys.current.id], []])
    assert.equal(await sealForKeyRotation(rotated), [])
    const seal = await lastSeal(platform.database.reader)
    assert.is(keyIdOf(seal?.digest ?? ''), rotated.keys.current.id)
    await addCredit(rotated, shop.merchantId)
    await sealLedger(rotated)
    assert.equal(await faultNames(rotated), [])
    const { keys } = await describeKeys(rotated)
    assert.equal(pluckAll(keys, 'use', 'retiredBy'), [
      ['former', seal?.position],
      ['current', null],
    ])
    const alone = withFilledKeys(platform, NEXT)
    const results = await verifyBooks(alone)
    const subjects = results.flatMap(({ breaches }) => breaches.map(({ subject }) => subject))
    assert.equal(new Set(subjects), new Set([`key ${platform.keys.current.id}`]))
    assert.equal(results.find(({ name }) => name === 'keys-at-hand')?.breaches, [
      {
        subject: `key ${platform.keys.current.id}`,
        detail: `1 entry ${(await entriesOf(platform.database.reader))[0]?.id} was made with this key, which is not in APP_KEY or APP_KEYS_FORMER: add it there to verify them; if no APP_KEY had this id, they are forged`,
      },
    ])
  })

  it('who forges with a key that was rotated is found', async ({ market, platform, shop }) => {
    const rotated = withFilledKeys(platform, NEXT, OURS)
    await sealForKeyRotation(rotated)
    await removeGuards(market.bed.testDatabase.database)
    const { writer } = market.bed.testDatabase.database
    await forgeCredit(writer, platform, shop.merchantId)
    const { entry: digest } = journalKeys(platform.keys).current
    const { mac } = await writer.selectFrom('ledger_heads').select('mac').executeTakeFirstOrThrow()
    const id = await rehashLast(writer, shop.merchantId, digest, mac)
    assert.equal(await brokenInvariants(rotated), {
      'chain-unbroken': [`credit_granted entry ${id}`],
      'heads-authentic': [`ledger ${shop.merchantId}`],
      'rows-complete-audit-entries': ['audit_entries'],
    })
  })

  it.run()
}
