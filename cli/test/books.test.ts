// long
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { openDatabase } from '../../server/platform/database/open-database.ts'
import { pluck } from '../../server/test/testkit/pluck.ts'
import { proofDialects } from '../../server/test/testkit/proof-size.ts'
import { removeGuards } from '../../server/test/testkit/tamper.ts'
import { SALE_REJECTION_REASONS } from '../../shared/rejection-reasons.ts'
import { type Books, suiteOverBooks } from './books.ts'
import { runHere } from './run-here.ts'

for (const dialect of proofDialects()) {
  const { it, books } = suiteOverBooks(`commands over books on ${dialect}`, dialect)
  /** For commands whose SQL is a service's, tested there on both databases. */
  const onSqlite = dialect === 'sqlite' ? it : () => undefined

  it('tells the story of a sale, which its order id, name and store stand for', async () => {
    const domain = `s${books.shop.merchantId}.myshopify.com`
    const byId = await books.json('sales', 'explain', '6100000001009')
    assert.equal(await books.json('sales', 'explain', '1001', '--store', domain), byId)
    assert.equal(
      [byId.commission, byId.store.shop_domain, byId.checks.length, byId.billing_cycle.state, byId.payouts],
      ['624.88', domain, SALE_REJECTION_REASONS.length, 'open', []],
    )
    const explain = ['sales', 'explain', '#1001', '--store', domain]
    await books.says(
      explain,
      /ACCEPTED: commission Rs 624\.88 to Sana Mirza .*platform fee Rs 62\.49/,
      /locked 12\.5 % on every product, for orders within 30 days/,
      /✓ \d+ checks passed by version \d+ of the rule, \d+ not asked/,
      /Commission {4}Rs 624\.88 \(12\.5 % of Rs 4,999\.00/,
    )
    const check = /\nself_purchase\tyes\tbuyer is creator: no\tThe buyer was not the creator\n/
    await books.says([...explain, '--all'], check)
    await books.refuses(['sales', 'explain', '#9999'], /No sale found for order #9999/)
  })

  it('refuses a name that stands for several orders, with the candidates', async () => {
    const ambiguous = /stands for 2 orders.*--store.\n(.*6100000001009.*accepted|.*rejected)/
    await books.refuses(['sales', 'explain', '#1001'], ambiguous)
    await books.refuses(['sales', 'explain', '#1001', '--store', 'unknown.example.pk'], /not found/)
    const json = await books.refuses(['sales', 'explain', '#1001', '--json'], /candidates/)
    const { candidates } = JSON.parse(json.stderr)
    assert.equal([json.stdout, candidates.length], ['', 2])
    const rejected = candidates.find((one: { order_id: string }) => one.order_id !== '6100000001009')
    const { rejection_reason, click, creator } = await books.json('sales', 'explain', rejected.sale_id)
    assert.equal([rejection_reason, click, creator], ['no_tracking_reference', null, null])
  })

  it('lists events by state, source, store and time', async () => {
    const statesOf = async (...options: string[]) =>
      pluck((await books.json('webhooks', 'events', ...options)).items, 'state')
    assert.equal(await statesOf(), ['set_aside', 'done', 'done', 'done'])
    const ofStore = ['--store', books.otherShop.storeId]
    assert.equal(await statesOf(...ofStore, '--since', '2026-01-01'), ['set_aside', 'done'])
    assert.equal(await statesOf(...ofStore, '--since', '2100-01-01'), [])
    assert.equal(await statesOf('--source', 'processor'), [])
    const [aside] = (await books.json('webhooks', 'events', '--state', 'set_aside')).items
    assert.match(aside.reason, /malformed/)
    assert.is(aside.store.id, books.otherShop.storeId)
    await books.refuses(['webhooks', 'events', '--store', 'x.myshopify.com'], /There is no store x\./)
    await books.says(['webhooks', 'events', '--limit', '1'], /^.*\n.*\n$/)
  })

  it('lists links and applications of a merchant, creator and offer', async () => {
    const [link] = (await books.json('links', 'list')).items
    assert.equal(
      [link.creator.email, link.offer.merchant.id, link.clicks, link.accepted_sales, link.commission_earned],
      [`${books.creatorId}@example.com`, books.shop.merchantId, 2, 2, '5624.88'],
    )
    const [application] = (await books.json('applications', 'list', '--status', 'approved')).items
    assert.is(application.affiliate_link.slug, link.slug)
    for (const list of ['links', 'applications'])
      for (const [options, count] of [
        [['--merchant', books.shop.merchantId, '--creator', books.creatorId], 1],
        [['--offer', link.offer.id], 1],
        [['--merchant', books.otherShop.merchantId], 0],
        [['--creator', books.otherShop.merchantId], 0],
        [['--offer', link.id], 0],
      ] as const)
        assert.is((await books.json(list, 'list', ...options)).items.length, count, `${list} ${options}`)
    assert.equal((await books.json('applications', 'list', '--status', 'pending')).items, [])
    const row = new RegExp(`^${link.slug}\t.*\t5624\\.88\t2\t2\tyes\t.*\t–\t12\\.5 %$`, 'm')
    await books.says(['links', 'list'], row)
  })

  it('continues every list at its cursor', async () => {
    for (const name of [
      ...['users list', 'stores list', 'offers list', 'applications list', 'links list', 'sales list'],
      ...['webhooks events', 'flagged list', 'billing cycles', 'payouts list', 'jobs list'],
      ...['endpoints list', 'mail list'],
    ]) {
      const words = name.split(' ')
      const all = await books.json(...words)
      assert.is(all.next_cursor, null, name)
      const read = []
      for (let cursor: string[] = []; ; ) {
        const page = await books.json(...words, '--limit', '1', ...cursor)
        assert.ok(page.items.length <= 1, name)
        read.push(...page.items)
        if (page.next_cursor === null) break
        cursor = ['--cursor', page.next_cursor]
      }
      assert.equal(read, all.items, name)
    }
    const wrong = /^affiliate: cursor: must be the next_cursor of the previous page\n$/
    await books.refuses(['sales', 'list', '--cursor', 'x'], wrong, 2)
    const text = await books.affiliate(['sales', 'list', '--limit', '1'])
    const [, cursor = ''] = /^There are more: add --cursor (\S+)\n$/.exec(text.stderr) ?? []
    const next = await books.affiliate(['sales', 'list', '--cursor', cursor])
    assert.equal([next.code, next.stderr, next.stdout.trim().split('\n').length], [0, '', 3])
  })

  it('shows balances that sum to zero, and books that hold', async () => {
    assert.is((await books.json('ledger', 'balances')).total, '0.00')
    const id = books.creatorId
    const owner = { id, email: `${id}@example.com`, display_name: 'Sana Mirza' }
    const own = [{ account: 'creator_pending', owner, balance: '-5624.88', postings: 2 }]
    assert.equal((await books.json('ledger', 'balances', id)).items, own)
    const fees = /platform_fees\tplatform\t\t562\.49\t2\n/
    await books.says(['ledger', 'balances'], fees, /Total\t\t6187\.37\t6187\.37/)
    assert.is((await books.json('ledger', 'verify')).ok, true)
    await books.says(['ledger', 'verify'], /All \d+ invariants hold/)
  })

  it('seals the journal, and compares it with a seal that was kept', async () => {
    await books.says(['ledger', 'verify', '--all'], /The journal was never sealed/)
    const sealed = await books.says(['ledger', 'seal'], /Sealed: number 1, of .*; 1 ledger moved/)
    const [digest = ''] = sealed.split('\n')
    const again = await books.json('ledger', 'seal')
    assert.equal([again.created, again.ledgers, again.seal.digest], [false, 0, digest])
    const against = (text: string) => ['ledger', 'verify', '--against', text]
    await books.says(
      [...against(digest.toUpperCase()), '--all'],
      /as-sealed\t1\t0\t/,
      new RegExp(`Last seal: ${digest} \\(number 1, of `),
      /Key [0-9a-f]{8}, APP_KEY: \d+ entr(y|ies) since /,
    )
    const lost = /^affiliate: The books do not hold: as-sealed; rows: digest 0{8}\.0{64}\n$/
    const unknown = await books.refuses(against(`00000000.${'0'.repeat(64)}`), lost)
    assert.match(unknown.stdout, /not the digest of the one seal in this database\. Either the books were/)
    const typo = /It must be a digest as "affiliate ledger seal" printed it/
    await books.refuses(against(digest.slice(1)), typo, 2)
  })

  it('verifies what is new since the last verified seal, and all rows with --full', async () => {
    const { ok, full, since, mark_stored } = await books.json('ledger', 'verify', '--full')
    assert.equal([ok, full, since, mark_stored], [true, true, null, true])
    const later = await books.json('ledger', 'verify')
    assert.equal([later.full, later.since.seal, later.since.digest], [false, 1, later.last_seal.digest])
    const said = /^All \d+ invariants hold \([\d,]+ rows checked, new since seal 1\)\.\n$/
    await books.says(['ledger', 'verify'], said)
    const { writer } = books.market.bed.testDatabase.database
    await writer.updateTable('watermarks').set({ value: 'forged' }).where('name', '=', 'verified').execute()
    const forged = /The mark of the last verification cannot be used: it was changed/
    await books.says(['ledger', 'verify'], forged)
  })

  it('closes cycles, first only in words', async () => {
    const [{ period_end: end, merchant }] = (await books.json('billing', 'cycles', '--state', 'open')).items
    assert.is(merchant.display_name, 'Chenab Lawn')
    const dry = await books.json('billing', 'close', '--as-of', end, '--dry-run')
    assert.equal([dry.items[0].outcome, dry.items[0].amount_due, dry.dry_run], ['closed', '6187.37', true])
    await books.refuses(['billing', 'close', '--as-of', '2026-13-01'], /is not a time: give/, 2)
    const ofOther = ['--as-of', end, '--merchant', books.otherShop.merchantId, '--yes']
    assert.equal((await books.json('billing', 'close', ...ofOther)).items, [])
    // A plain date is its midnight on the merchants' clock, which is when periods end.
    const date = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Asia/Karachi' }).format(Date.parse(end))
    const close = ['billing', 'close', '--as-of', date, '--yes']
    await books.says(close, /6187\.37\t.*\nThese cycles close before their period is over\.\n(.*\n)+1 closed/)
    await books.says(close, /No open cycle ends by .*\+05:00/)
  })

  it('pays out what a charged cycle released', async () => {
    const { market } = books
    // What a command has written is due by the clock on the wall.
    const drainUntilIdle = () => {
      market.clock.set(new Date().toISOString())
      return market.drainUntilIdle()
    }
    await drainUntilIdle()
    const [cycle] = (await books.json('billing', 'cycles', '--state', 'closed')).items
    await market.confirmPayment(cycle.id)
    await drainUntilIdle()
    const run = ['payouts', 'run', '--yes']
    const dry = await books.json(...run, '--dry-run')
    assert.equal([dry.items[0].outcome, dry.items[0].payout_id], ['paid_out', null])
    const asked = /Make 1 payout, Rs 5,624\.88 in all\? .* \[y\/N\] /
    await books.type(['payouts', 'run'], { typed: [{ after: asked, keys: 'n\n' }] })
    await books.says(run, /\t5624\.88\tpayout .*\nThe running service sends it to the processor\.\n$/)
    await drainUntilIdle()
    const [payout] = (await books.json('payouts', 'list', '--state', 'submitted')).items
    await market.settlePayout(payout.id, 'failed')
    await drainUntilIdle()
    await books.says(
      ['sales', 'explain', '6100000001009'],
      new RegExp(`Payout ${payout.id} .*of Rs 5,624\\.88.* failed .*returned by the bank`),
      /goes out with the next payout run/,
    )
    const failed = await books.json('payouts', 'list', '--state', 'failed', '--creator', books.creatorId)
    assert.is(failed.items[0].failure_reason, 'returned by the bank')
    assert.equal((await books.json('payouts', 'list', '--creator', books.shop.merchantId)).items, [])
    // The one that failed must be looked up before it is replaced, and no processor runs here.
    await books.says(run, /\nNo payout was made\.\n$/)
    const waits = /waits: the processor cannot be asked .*the next run asks again/
    await books.says([...run, '--dry-run'], waits)
  })

  onSqlite('grants a credit once', async () => {
    const credit = (to: string, amount: string, reference: string) => [
      ...['billing', 'credit', to, amount, '--reference', reference, '--reason', 'returned', '--yes'],
    ]
    const shop = books.shop.merchantId
    await books.says(credit(shop, '100.50', 'CR-1'), /Rs 100\.50 credited to .* under CR-1/)
    assert.is((await books.json(...credit(shop, '100.50', 'CR-1'))).created, false)
    await books.refuses(credit(shop, '100.51', 'CR-1'), /Reference CR-1 belongs to another credit/)
    await books.refuses(credit(shop, '999999', 'CR-2'), /At most Rs 6,086\.87 can be credited/)
    await books.refuses(credit(books.creatorId, '1', 'x'), /is not a merchant/)
  })

  onSqlite('makes an admin, sets passwords, suspends and reinstates', async () => {
    for (const [words, password, said] of [
      ['create-admin Op@X.pk', 'a long passphrase\nmore\n', /^0 op@x\.pk is an admin now/],
      ['create-admin op@x.pk', 'a long passphrase', /^1 /],
      ['create-admin o@x.pk', 'short\n', /^2 affiliate: password: must have at least 10 characters\n$/],
      ['set-password op@x.pk --yes', 'op@x.pk-2026\n', /^2 affiliate: password: must not be your e-mail/],
      ['set-password op@x.pk --yes', '', /^2 .*No password came on stdin/],
      ['set-password op@x.pk --yes', 'another passphrase', /^0 .*new password/],
    ] as const) {
      const args = ['users', ...words.split(' '), '--password-stdin']
      const { code, stdout, stderr } = await books.affiliate(args, {}, password)
      assert.match(`${code} ${stdout}${stderr}`, said)
    }
    await books.refuses(['users', 'suspend', 'op@x.pk', '--yes'], /last active admin/)
    await books.refuses(['users', 'suspend', 'unknown@x.pk', '--json'], /"code":"not_found"/)
    const suspend = ['users', 'suspend', books.creatorId, '--reason', 'own links', '--yes']
    await books.says(suspend, /is suspended now/)
    await books.says(suspend, /was suspended already; nothing changed/)
    assert.equal(pluck((await books.json('users', 'list', '--suspended')).items, 'id'), [books.creatorId])
    assert.is((await books.json('users', 'reinstate', books.creatorId, '--yes')).changed, true)
    const { items, more } = await books.json('users', 'list', '--role', 'admin')
    assert.equal([pluck(items, 'email'), more], [['op@x.pk'], false])
  })

  if (dialect === 'sqlite') it('backs up while the database is in use', () => backsUpInUse(books))
  else it('backs up with the programs of PostgreSQL', () => backsUpByTool(books))

  it('names the rows when one has been tampered with', async () => {
    const { database } = books.market.bed.testDatabase
    await removeGuards(database)
    const { sale_id: id } = await books.json('sales', 'explain', '6100000001009')
    await database.writer.updateTable('sales').set({ commission: 62_489 }).where('id', '=', id).execute()
    const named = new RegExp(`^affiliate: The books do not hold: .*sales-in-journal.*${id}.*\n$`)
    assert.match((await books.refuses(['ledger', 'verify'], named)).stdout, new RegExp(`${id}: `))
    const json = await books.refuses(['ledger', 'verify', '--json'], /sales-in-journal/)
    assert.is(JSON.parse(json.stdout).ok, false)
  })

  it.run()
}

async function backsUpInUse(books: Books): Promise<void> {
  const { folder, database } = books.market.bed.testDatabase
  const { writer } = database
  const file = join(folder, 'copy.db')
  // So much that it is copied in several steps, and someone who writes all the while.
  await sql`create table ballast as select zeroblob(50000000) as filling`.execute(writer)
  await sql`create table ticks (at)`.execute(writer)
  const ticking = setInterval(() => sql`insert into ticks values (1)`.execute(writer), 1)
  const made = await books.json('db', 'backup', file).finally(() => clearInterval(ticking))
  const ticksIn = async (db: typeof writer) => (await sql`select at from ticks`.execute(db)).rows.length
  const ticks = await ticksIn(writer)
  await sql`drop table ballast`.execute(writer)
  await sql`drop table ticks`.execute(writer)
  assert.equal([made.file, made.bytes, statSync(file).mode & 0o777], [file, statSync(file).size, 0o600])
  const copy = await openDatabase(`sqlite:${file}`, { create: false })
  assert.is((await copy.reader.selectFrom('sales').select('id').execute()).length, 3)
  assert.ok((await ticksIn(copy.reader)) < ticks, 'no one wrote while it was made')
  await copy.close()
  const verify = ['ledger', 'verify', '--database-url', `sqlite:${file}`, '--json']
  const keyless = await runHere(verify, { APP_KEY: '' })
  assert.is(keyless.code, 1)
  assert.match(keyless.stderr, /only be checked with the key that it was made with\. Set APP_KEY/)
  const keyed = await runHere(verify)
  assert.equal([keyed.code, JSON.parse(keyed.stdout).ok], [0, true], keyed.stderr)
  await books.refuses(['db', 'backup', file], /exists already/)
}

async function backsUpByTool(books: Books): Promise<void> {
  const { folder, url } = books.market.bed.testDatabase
  const file = join(folder, 'copy.dump')
  const tool = join(folder, 'pg_dump')
  const backUp = (PATH = `${folder}:/bin:/usr/bin`) => books.affiliate(['db', 'backup', file], { PATH })
  const missing = await backUp(folder)
  assert.match(missing.stderr, /pg_dump is not on PATH/)
  assert.not(missing.stderr.includes(new URL(url).password))
  writeFileSync(tool, '#!/bin/sh\necho "pg_dump: error: server version mismatch" >&2\nexit 1\n')
  chmodSync(tool, 0o700)
  const failed = await backUp()
  assert.match(failed.stderr, /^affiliate: pg_dump failed: pg_dump: error: server version mismatch\n$/)
  assert.not(existsSync(file))
  writeFileSync(tool, '#!/bin/sh\necho "$PGPASSWORD $*" > "$3"\n')
  const made = await backUp()
  assert.is(made.code, 0, made.stderr)
  assert.ok(statSync(file).size > 0)
}
