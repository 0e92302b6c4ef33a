// long
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { closeDueCycles } from '../../server/billing/close-cycle.service.ts'
import { sealName, sealText, storeSeals } from '../../server/ledger/seals/stored-seals.service.ts'
import { changedTables, tableDigests } from '../../server/test/authorization/digest.ts'
import { SafepayDouble } from '../../server/test/safepay/safepay-double.ts'
import { SAFEPAY_SETTINGS } from '../../server/test/safepay/safepay-market.ts'
import { pluck, pluckAll } from '../../server/test/testkit/pluck.ts'
import { proofDialects } from '../../server/test/testkit/proof-size.ts'
import { DAY, HOUR } from '../../server/test/testkit/testbed.ts'
import { formatMoney } from '../../shared/money.ts'
import { openBooks, suiteOverBooks } from './books.ts'
import { openProcessorStub } from './processor-stub.ts'
import { APP_KEY } from './run-affiliate.ts'

for (const dialect of proofDialects()) {
  const { it, books } = suiteOverBooks(`commands that look back on ${dialect}`, dialect)
  /** What depends on no database. */
  const onSqlite = dialect === 'sqlite' ? it : () => undefined

  it('judge the stored orders again, and change nothing', async () => {
    const { reader } = books.market.platform.database
    const before = await tableDigests(reader)
    // A store that is set to use another name for the parameter carries no reference, read today.
    const otherName = { TRACKING_PARAMETER: 'another_ref' }
    const again = ['webhooks', 'reprocess', '--dry-run']
    const domain = `s${books.shop.merchantId}.myshopify.com`
    const { counts, ...same } = await books.json(...again)
    assert.equal([same.dry_run, same.items, same.merchants, same.creators], [true, [], [], []])
    assert.equal([counts.events, counts.judged, counts.different, counts.unreadable], [4, 3, 0, 1])
    await books.says(again, /^4 events, 3 decided again\.\n {2}1 unreadable.*\nNothing would differ\.\n$/)
    const one = await books.json(...again, '--store', domain)
    assert.equal([one.counts.events, one.store], [2, domain])
    assert.is((await books.json(...again, '--since', '2100-01-01')).counts.events, 0)
    const changed = await books.affiliate(again, otherName)
    assert.is(changed.code, 0, changed.stderr)
    for (const said of [
      /\n#1001\taccepted\trejected: no_tracking_reference\t-687\.37\t.*\t4999\.00\t4999\.00\t624\.88\t0\.00\t62\.49\t0\.00\t/,
      /merchant is billed\t.*\t6187\.37\t0\.00\t-6187\.37\n/,
      /creator earns\t.*\t5624\.88\t0\.00\t-5624\.88\n/,
      /\n2 would differ\. Nothing was changed/,
    ])
      assert.match(changed.stdout, said)
    const { items, creators } = JSON.parse((await books.affiliate([...again, '--json'], otherName)).stdout)
    const [first] = items
    const found = [items.length, first.before.verdict, first.commission_difference]
    assert.equal(found, [2, 'accepted', '-624.88'])
    assert.equal([creators[0].id, creators[0].commission_after], [books.creatorId, '0.00'])
    assert.equal(changedTables(before, await tableDigests(reader)), [])
  })

  onSqlite('refuse to rewrite books, and what cannot be meant', async () => {
    const reprocess = ['webhooks', 'reprocess']
    const statement = ['ledger', 'statement']
    const day = ['--from', '2026-11-02', '--to', '2026-11-02']
    for (const [words, why, code] of [
      [reprocess, /^affiliate: Books are never rewritten: add --dry-run .*\n$/, 2],
      [[...reprocess, '--json'], /"code":"validation_failed"/, 2],
      [[...reprocess, '--dry-run', '--since', 'yesterday'], /"yesterday" is not a time/, 2],
      [[...reprocess, '--dry-run', '--store', 'unknown.example.pk', '--json'], /"code":"not_found"/, 1],
      [[...statement, 'unknown@example.pk', '--json'], /"code":"not_found"/, 1],
      [[...statement, 'platform', ...day], /--from must lie before --to/, 2],
    ] as const)
      assert.is((await books.refuses(words, why, code)).stdout, '')
  })

  it('show the statement of a merchant, a creator and the platform', async () => {
    const email = `${books.shop.merchantId}@example.com`
    const statement = ['ledger', 'statement']
    const { items, opening, closing, owner, from } = await books.json(...statement, email)
    assert.equal(pluckAll(items, 'order_name', 'account', 'debit', 'credit', 'balance'), [
      ['#1001', 'merchant_unbilled', '687.37', '0.00', '687.37'],
      ['#1002', 'merchant_unbilled', '5500.00', '0.00', '6187.37'],
    ])
    assert.equal([opening[0].balance, closing[0].balance, owner.email], ['0.00', '6187.37', email])
    const today = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Asia/Karachi' }).format(Date.now())
    assert.is(from, new Date(`${today.slice(0, 7)}-01T00:00:00+05:00`).toISOString())
    assert.is((await books.json(...statement, books.creatorId)).closing[0].balance, '-5624.88')
    const platform = await books.json(...statement, 'platform')
    assert.equal([platform.owner, platform.closing[0].balance], [null, '-562.49'])
    await books.says(
      [...statement, email],
      /^Statement of Chenab Lawn <.*>, merchant\nFrom .*\+05:00 to before .*\+05:00\n/,
      /\+05:00\tSale #1001 \(order 6100000001009\)\t687\.37\t\t687\.37 Dr\tmerchant_unbilled\t/,
      /merchant_unbilled\t0\.00\t6187\.37\t0\.00\t6187\.37 Dr\n/,
    )
    const before = ['--from', '2020-01-01', '--to', '2020-02-01']
    await books.says([...statement, email, ...before], /No entry so far\./)
  })

  it('compare with the processor’s records, flag what differs, and tell a script by the exit code', async () => {
    const { market } = books
    const { platform, clock, processor } = market
    // Closed an hour ago: what has just moved is not compared yet.
    clock.pass(-HOUR)
    await closeDueCycles(platform, { asOf: clock.now() + 60 * DAY })
    await market.drainUntilIdle()
    const stub = await openProcessorStub()
    /** With the processor's records as they are now. */
    const reconcile = (...more: string[]) => {
      stub.held = processor.invoices.map((item) => ({ ...item, amount: formatMoney(item.amount) }))
      return books.affiliate(['billing', 'reconcile', ...more], stub.settings)
    }
    try {
      const agreed = await reconcile()
      assert.equal([agreed.code, agreed.stderr], [0, ''])
      assert.match(agreed.stdout, /^1 compared, 0 differ, 0 could not be asked about\.\n$/)
      for (const invoice of processor.invoices) invoice.status = 'paid'
      const human = await reconcile()
      assert.is(human.code, 1)
      const row =
        /invoice\t.*\tpaid at the processor, not here\t6187\.37\topen\tpaid Rs 6,187\.37\traised now\n/
      assert.match(human.stdout, row)
      assert.match(human.stderr, /^affiliate: Not reconciled: 1 differ; .*\n$/)
      const json = await reconcile('--json', '--since', '2026-01-01')
      const { items, complete } = JSON.parse(json.stdout)
      assert.equal([items[0].differences, items[0].flag, complete], [['paid_there'], 'refreshed', true])
      assert.is(JSON.parse(json.stderr).code, 'conflict')
      const away = await books.refuses(['billing', 'reconcile', '--json'], /conflict|unavailable/)
      assert.is(JSON.parse(away.stdout).unanswered[0].detail, 'the processor is not running')
    } finally {
      await stub.close()
    }
  })

  it('list what the processor has and no call made', async () => {
    const double = await SafepayDouble.open()
    const reconcile = (...more: string[]) =>
      books.affiliate(['billing', 'reconcile', ...more], { ...SAFEPAY_SETTINGS, SAFEPAY_URL: double.url })
    try {
      const foreign = { token: 'pm_1', requestId: 'of another system', orderId: '', type: 'PAYOUT' } as const
      const facts = { amount: 75_000, status: 'P_SETTLED', createdAt: Date.now() - HOUR, body: {} } as const
      double.payments.push({ ...foreign, ...facts })
      const human = await reconcile()
      assert.is(human.code, 1)
      assert.match(human.stdout, /\nPAYOUT\t750\.00\tpm_1\tP_SETTLED\t.*\n$/)
      assert.match(human.stderr, /the processor has 1 that no call of ours made/)
      const { unknown_items } = JSON.parse((await reconcile('--json')).stdout)
      const items = pluckAll(unknown_items, 'id', 'request_id', 'amount')
      assert.equal(items, [['pm_1', 'of another system', '750.00']])
      // The look-up of the cycle's invoice, and the list.
      const busy = { status: 500, body: 'busy' }
      double.instead.set('GET payments', [busy, busy])
      assert.match((await reconcile()).stderr, /; the processor does not list its records\.\n$/)
      const flagged = pluck((await books.json('flagged', 'list')).items, 'subject_id')
      assert.ok(flagged.includes('safepay-raast'))
      assert.equal(double.complaints, [])
    } finally {
      await double.close()
    }
  })

  it('compare the journal with the seals in SEAL_STORAGE', async () => {
    const SEAL_STORAGE = mkdtempSync(join(tmpdir(), 'affiliate-kept-seals-'))
    try {
      const against = ['ledger', 'verify', '--against', 'storage']
      const verify = () => books.affiliate([...against, '--all'], { SEAL_STORAGE })
      await books.refuses(against, /SEAL_STORAGE is not set/)
      await books.says(['ledger', 'seal'])
      const { platform } = books.market
      await storeSeals({ ...platform, config: { ...platform.config, SEAL_STORAGE } })
      const clean = await verify()
      assert.is(clean.code, 0, clean.stderr)
      assert.match(clean.stdout, /as-stored\t1\t0\t/)
      // As if seal 2 had been stored before the database was put back to an earlier state.
      const digest = `${platform.keys.current.id}.${'0'.repeat(64)}`
      const second = sealText({ position: 2, sealedAt: Date.now(), digest })
      writeFileSync(join(SEAL_STORAGE, sealName(2)), second)
      const rolledBack = await verify()
      assert.match(rolledBack.stderr, /^affiliate: The books do not hold: as-stored; rows: seal 2\n$/)
      assert.match(rolledBack.stdout, /seal 2: the seal storage holds it, and the database ends with seal 1/)
    } finally {
      rmSync(SEAL_STORAGE, { recursive: true })
    }
  })

  it('retire a replaced key, and refuse to run with it', async () => {
    await books.market.close()
    Object.assign(books, await openBooks(dialect))
    const keys = { APP_KEY: Buffer.alloc(32, 42).toString('base64'), APP_KEYS_FORMER: APP_KEY }
    const preview = await books.affiliate(['keys', 'rotate', '--dry-run'], keys)
    assert.match(preview.stdout, /Former key [0-9a-f]{8} would be retired\./)
    const made = await books.affiliate(['keys', 'rotate'], keys)
    assert.is(made.code, 0, made.stderr)
    assert.match(made.stdout, /Former key [0-9a-f]{8} is retired: the journal takes nothing more/)
    assert.match(made.stdout, /"affiliate ledger verify" needs them for the journal entries/)
    const retired = /^affiliate: setting APP_KEY: was retired by seal \d+: set the key that replaced it\n$/
    await books.refuses(['payouts', 'run', '--yes'], retired)
    assert.is((await books.affiliate(['ledger', 'verify'], keys)).code, 0)
    const { APP_KEY: alone } = keys
    const missing = await books.affiliate(['ledger', 'verify'], { APP_KEY: alone })
    assert.is(missing.code, 1)
    assert.match(missing.stderr, /do not hold: keys-at-hand, [a-z, -]+; rows: (key [0-9a-f]{8}(, )?)+\n$/)
  })

  it.run()
}
