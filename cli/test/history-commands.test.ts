// long
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { closeDueCycles } from '../../server/billing/close-cycle.service.ts'
import { changedTables, tableDigests } from '../../server/test/authorization/digest.ts'
import { SafepayDouble } from '../../server/test/safepay/safepay-double.ts'
import { SAFEPAY_SETTINGS } from '../../server/test/safepay/safepay-market.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { DAY, HOUR } from '../../server/test/testkit/testbed.ts'
import { formatMoney } from '../../shared/money.ts'
import { type Books, openBooks } from './books.ts'

for (const dialect of testDialects()) {
  const it = suite(`commands that look back on ${dialect}`)
  /** What depends on no database. */
  const onSqlite = dialect === 'sqlite' ? it : () => undefined
  let books: Books
  it.before(async () => {
    books = await openBooks(dialect)
  })
  it.after(() => books.market.close())

  it('judge the stored orders again, and change nothing', async () => {
    const { reader } = books.market.platform.database
    const before = await tableDigests(reader)
    // A store that is set to use another name for the parameter carries no reference, read today.
    const otherName = { TRACKING_PARAMETER: 'another_ref' }
    const again = ['webhooks', 'reprocess', '--dry-run']
    const domain = `s${books.shop.merchantId}.myshopify.com`
    const [same, human, changed, changedJson, one, later] = await Promise.all([
      books.json(...again),
      books.affiliate(again),
      books.affiliate(again, otherName),
      books.affiliate([...again, '--json'], otherName),
      books.json(...again, '--store', domain),
      books.json(...again, '--since', '2100-01-01'),
    ])
    assert.equal([same.dry_run, same.items, same.merchants, same.creators], [true, [], [], []])
    assert.equal(
      [same.counts.events, same.counts.judged, same.counts.different, same.counts.unreadable],
      [4, 3, 0, 1],
    )
    assert.match(human.stdout, /^4 events, 3 decided again\.\n {2}1 unreadable.*\nNothing would differ\.\n$/)
    assert.equal([one.counts.events, one.store, later.counts.events], [2, domain, 0])
    assert.is(changed.code, 0, changed.stderr)
    assert.match(
      changed.stdout,
      /\t#1001\taccepted\trejected: no_tracking_reference\t4999\.00\t4999\.00\t624\.88\t0\.00\t62\.49\t0\.00\t-687\.37\t/,
    )
    assert.match(changed.stdout, /merchant is billed\t.*\t6187\.37\t0\.00\t-6187\.37\n/)
    assert.match(changed.stdout, /creator earns\t.*\t5624\.88\t0\.00\t-5624\.88\n/)
    assert.match(changed.stdout, /\n2 would differ\. Nothing was changed/)
    const { items, creators, counts } = JSON.parse(changedJson.stdout)
    assert.equal([items.length, counts.different], [2, 2])
    assert.equal(
      [items[0].order_name, items[0].before.verdict, items[0].after.reason, items[0].commission_difference],
      ['#1001', 'accepted', 'no_tracking_reference', '-624.88'],
    )
    assert.equal([creators[0].id, creators[0].commission_after], [books.creatorId, '0.00'])
    assert.equal(changedTables(before, await tableDigests(reader)), [])
  })

  onSqlite('refuse to rewrite books, and what cannot be meant', async () => {
    const [bare, bareJson, noTime, noStore, noUser, backwards] = await Promise.all([
      books.affiliate(['webhooks', 'reprocess']),
      books.affiliate(['webhooks', 'reprocess', '--json']),
      books.affiliate(['webhooks', 'reprocess', '--dry-run', '--since', 'yesterday']),
      books.affiliate(['webhooks', 'reprocess', '--dry-run', '--store', 'unknown.example.pk', '--json']),
      books.affiliate(['ledger', 'statement', 'unknown@example.pk', '--json']),
      books.affiliate(['ledger', 'statement', 'platform', '--from', '2026-11-02', '--to', '2026-11-02']),
    ])
    assert.equal(
      [bare, bareJson, noTime, noStore, noUser, backwards].map(({ code }) => code),
      [2, 2, 2, 1, 1, 2],
    )
    assert.match(bare.stderr, /^affiliate: Books are never rewritten: add --dry-run .*\n$/)
    assert.is(JSON.parse(bareJson.stderr).code, 'validation_failed')
    assert.match(noTime.stderr, /"yesterday" is not a time/)
    assert.equal(
      [JSON.parse(noStore.stderr).code, JSON.parse(noUser.stderr).code],
      ['not_found', 'not_found'],
    )
    assert.match(backwards.stderr, /--from must lie before --to/)
    for (const { stdout } of [bare, bareJson, noTime, noStore, noUser, backwards]) assert.is(stdout, '')
  })

  it('show the statement of a merchant, a creator and the platform', async () => {
    const email = `${books.shop.merchantId}@example.com`
    const [merchant, creator, platform, human, before] = await Promise.all([
      books.json('ledger', 'statement', email),
      books.json('ledger', 'statement', books.creatorId),
      books.json('ledger', 'statement', 'platform'),
      books.affiliate(['ledger', 'statement', email]),
      books.affiliate(['ledger', 'statement', email, '--from', '2020-01-01', '--to', '2020-02-01']),
    ])
    assert.equal(
      merchant.items.map((entry: Record<string, string>) => [
        entry.order_name,
        entry.account,
        entry.debit,
        entry.credit,
        entry.balance,
      ]),
      [
        ['#1001', 'merchant_unbilled', '687.37', '0.00', '687.37'],
        ['#1002', 'merchant_unbilled', '5500.00', '0.00', '6187.37'],
      ],
    )
    assert.equal([merchant.opening[0].balance, merchant.closing[0].balance], ['0.00', '6187.37'])
    assert.equal([merchant.owner.email, merchant.entries], [email, 2])
    const month = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Asia/Karachi' })
      .format(Date.now())
      .slice(0, 7)
    assert.is(merchant.from, new Date(`${month}-01T00:00:00+05:00`).toISOString())
    assert.is(creator.closing[0].balance, '-5624.88')
    assert.equal(
      [platform.owner, platform.closing[0].account, platform.closing[0].balance],
      [null, 'platform_fees', '-562.49'],
    )
    assert.match(
      human.stdout,
      /^Statement of Chenab Lawn <.*>, merchant\nFrom .*\+05:00 to before .*\+05:00\n/,
    )
    assert.match(
      human.stdout,
      /\+05:00\tSale #1001 \(order 6100000001009\)\tmerchant_unbilled\t687\.37\t\t687\.37 Dr\t/,
    )
    assert.match(human.stdout, /merchant_unbilled\t0\.00\t6187\.37\t0\.00\t6187\.37 Dr\n/)
    assert.match(before.stdout, /No entry so far\./)
  })

  it('compare with the processor’s records, flag what differs, and tell a script by the exit code', async () => {
    const { market } = books
    const { platform, clock, processor } = market
    // Closed an hour ago: what has just moved is not compared yet.
    clock.pass(-HOUR)
    await closeDueCycles(platform, { asOf: clock.now() + 60 * DAY })
    await market.drainUntilIdle()
    const server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://processor')
      const held = pathname === '/invoices' ? processor.invoices : processor.payouts
      const items = held
        .filter(({ reference }) => reference === searchParams.get('reference'))
        .map((item) => ({ ...item, amount: formatMoney(item.amount) }))
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ items }))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    try {
      const settings = {
        PROCESSOR: 'http',
        PROCESSOR_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        PROCESSOR_API_KEY: 'key',
        PROCESSOR_WEBHOOK_SECRETS: `whsec_${Buffer.alloc(24, 3).toString('base64')}`,
      }
      const reconcile = (...more: string[]) => books.affiliate(['billing', 'reconcile', ...more], settings)
      const agreed = await reconcile()
      assert.equal([agreed.code, agreed.stderr], [0, ''])
      assert.match(agreed.stdout, /^1 compared, 0 differ, 0 could not be asked about\.\n$/)
      for (const invoice of processor.invoices) invoice.status = 'paid'
      const human = await reconcile()
      const json = await reconcile('--json', '--since', '2026-01-01')
      assert.equal([human.code, json.code], [1, 1])
      assert.match(
        human.stdout,
        /invoice\t.*\t6187\.37\topen\tpaid Rs 6,187\.37\tpaid at the processor, not here\traised now\n/,
      )
      assert.match(human.stderr, /^affiliate: Not reconciled: 1 differ; .*\n$/)
      const { items, complete } = JSON.parse(json.stdout)
      assert.equal([items[0].differences, items[0].flag, complete], [['paid_there'], 'refreshed', true])
      assert.is(JSON.parse(json.stderr).code, 'conflict')
      const away = await books.affiliate(['billing', 'reconcile', '--json'])
      assert.is(away.code, 1)
      assert.is(JSON.parse(away.stdout).unanswered[0].detail, 'the processor is not running')
    } finally {
      server.close()
    }
  })

  it('list what the processor has and no call made', async () => {
    const double = await SafepayDouble.open()
    try {
      const settings = { ...SAFEPAY_SETTINGS, SAFEPAY_URL: double.url }
      double.payments.push({
        token: 'pm_1',
        requestId: 'of another system',
        orderId: '',
        type: 'PAYOUT',
        amount: 75_000,
        status: 'P_SETTLED',
        createdAt: Date.now() - HOUR,
        body: {},
      })
      const human = await books.affiliate(['billing', 'reconcile'], settings)
      assert.is(human.code, 1)
      assert.match(human.stdout, /\nPAYOUT\tP_SETTLED\t750\.00\t.*\tpm_1\n$/)
      assert.match(human.stderr, /the processor has 1 that no call of ours made/)
      const { unknown, unknown_items } = JSON.parse(
        (await books.affiliate(['billing', 'reconcile', '--json'], settings)).stdout,
      )
      const [item] = unknown_items
      assert.equal(
        [unknown, item.id, item.request_id, item.amount],
        [1, 'pm_1', 'of another system', '750.00'],
      )
      // The look-up of the cycle's invoice, and the list.
      double.instead.set(
        'GET payments',
        [1, 2].map(() => ({ status: 500, body: 'busy' })),
      )
      const silent = await books.affiliate(['billing', 'reconcile'], settings)
      assert.match(silent.stderr, /; the processor does not list its records\.\n$/)
      const flags = (await books.json('flagged', 'list')).items
      assert.ok(flags.some(({ subject_id }: { subject_id: string }) => subject_id === 'safepay-raast'))
      assert.equal(double.complaints, [])
    } finally {
      await double.close()
    }
  })

  it.run()
}
