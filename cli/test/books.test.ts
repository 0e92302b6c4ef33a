// long
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openDatabase } from '../../server/platform/database/open-database.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { removeGuards } from '../../server/test/testkit/tamper.ts'
import { type Books, openBooks } from './books.ts'
import { runHere } from './run-here.ts'

for (const dialect of testDialects()) {
  const it = suite(`commands over books on ${dialect}`)
  /** For commands whose SQL is a service's, tested there on both databases. */
  const onSqlite = dialect === 'sqlite' ? it : () => undefined
  let books: Books
  it.before(async () => {
    books = await openBooks(dialect)
  })
  it.after(() => books.market.close())

  it('tells the story of a sale, which its order id, name and store stand for', async () => {
    const domain = `s${books.shop.merchantId}.myshopify.com`
    const [byName, byId, human, unknown] = await Promise.all([
      books.json('sales', 'explain', '1001', '--store', domain),
      books.json('sales', 'explain', '6100000001009'),
      books.affiliate(['sales', 'explain', '#1001', '--store', domain]),
      books.affiliate(['sales', 'explain', '#9999']),
    ])
    assert.equal(byName, byId)
    assert.is(byId.commission, '624.88')
    assert.is(byId.store.shop_domain, domain)
    assert.is(byId.checks.length, 15)
    assert.is(byId.billing_cycle.state, 'open')
    assert.equal(byId.payouts, [])
    assert.match(human.stdout, /ACCEPTED: commission Rs 624\.88 to Sana Mirza .*platform fee Rs 62\.49/)
    assert.match(human.stdout, /locked 12\.5 % on every product, for orders within 30 days/)
    assert.match(human.stdout, /The buyer was not the creator\tyes/)
    assert.match(human.stdout, /Commission {4}Rs 624\.88 \(12\.5 % of Rs 4,999\.00/)
    assert.is(unknown.code, 1)
    assert.match(unknown.stderr, /No sale found for order #9999/)
  })

  it('refuses a name that stands for several orders, with the candidates', async () => {
    const [human, json, wrongStore] = await Promise.all([
      books.affiliate(['sales', 'explain', '#1001']),
      books.affiliate(['sales', 'explain', '#1001', '--json']),
      books.affiliate(['sales', 'explain', '#1001', '--store', 'unknown.example.pk']),
    ])
    assert.is(human.code, 1)
    assert.match(human.stderr, /stands for 2 orders.*--store.\n(.*6100000001009.*accepted|.*rejected)/)
    assert.is(json.stdout, '')
    assert.is(JSON.parse(json.stderr).candidates.length, 2)
    assert.equal([wrongStore.code, wrongStore.stdout], [1, ''])
    const rejected = JSON.parse(json.stderr).candidates.find(
      (one: { order_id: string }) => one.order_id !== '6100000001009',
    )
    const story = await books.json('sales', 'explain', rejected.sale_id)
    assert.is(story.rejection_reason, 'no_tracking_reference')
    assert.equal([story.click, story.creator, story.billing_cycle], [null, null, null])
  })

  it('lists events by state and source', async () => {
    const [all, aside, processor, human] = await Promise.all([
      books.json('webhooks', 'events'),
      books.json('webhooks', 'events', '--state', 'set_aside'),
      books.json('webhooks', 'events', '--source', 'processor'),
      books.affiliate(['webhooks', 'events', '--limit', '1']),
    ])
    assert.equal(
      all.items.map((event: { state: string }) => event.state),
      ['set_aside', 'done', 'done', 'done'],
    )
    assert.match(aside.items[0].reason, /malformed/)
    assert.is(aside.items[0].store.id, books.otherShop.storeId)
    assert.equal(processor.items, [])
    assert.is(human.stdout.trim().split('\n').length, 2)
  })

  it('lists links and applications of a merchant, creator and offer', async () => {
    const [link] = (await books.json('links', 'list')).items
    assert.equal(
      [link.creator.email, link.offer.merchant.id, link.clicks, link.accepted_sales, link.commission_earned],
      [`${books.creatorId}@example.com`, books.shop.merchantId, 2, 2, '5624.88'],
    )
    const [application] = (await books.json('applications', 'list', '--status', 'approved')).items
    assert.is(application.affiliate_link.slug, link.slug)
    assert.equal([application.creator.id, application.merchant.id], [books.creatorId, books.shop.merchantId])
    for (const list of ['links', 'applications']) {
      const idsOf = async (...options: string[]) =>
        (await books.json(list, 'list', ...options)).items.map(({ id }: { id: string }) => id)
      const all = await idsOf()
      assert.is(all.length, 1)
      assert.equal(await idsOf('--merchant', books.shop.merchantId, '--creator', books.creatorId), all)
      assert.equal(await idsOf('--offer', link.offer.id), all)
      assert.equal(await idsOf('--merchant', books.otherShop.merchantId), [])
      assert.equal(await idsOf('--creator', books.otherShop.merchantId), [])
      assert.equal(await idsOf('--offer', link.id), [])
    }
    assert.equal((await books.json('applications', 'list', '--status', 'pending')).items, [])
    const text = await books.affiliate(['links', 'list'])
    assert.match(text.stdout, new RegExp(`^${link.slug}\t.*\tyes\t–\t12\\.5 %\t2\t2\t5624\\.88$`, 'm'))
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
    const wrong = await books.affiliate(['sales', 'list', '--cursor', 'x'])
    assert.is(wrong.code, 2)
    assert.match(wrong.stderr, /^affiliate: cursor: must be the next_cursor of the previous page\n$/)
    const text = await books.affiliate(['sales', 'list', '--limit', '1'])
    const [, cursor = ''] = /^There are more: add --cursor (\S+)\n$/.exec(text.stderr) ?? []
    const next = await books.affiliate(['sales', 'list', '--cursor', cursor])
    assert.equal([next.code, next.stderr, next.stdout.trim().split('\n').length], [0, '', 3])
  })

  it('shows balances that sum to zero, and books that hold', async () => {
    const [all, own, human, verdict, lines] = await Promise.all([
      books.json('ledger', 'balances'),
      books.json('ledger', 'balances', books.creatorId),
      books.affiliate(['ledger', 'balances']),
      books.json('ledger', 'verify'),
      books.affiliate(['ledger', 'verify']),
    ])
    assert.is(all.total, '0.00')
    assert.equal(own.items, [
      {
        account: 'creator_pending',
        owner: {
          id: books.creatorId,
          email: `${books.creatorId}@example.com`,
          display_name: 'Sana Mirza',
        },
        balance: '-5624.88',
        postings: 2,
      },
    ])
    assert.match(human.stdout, /platform_fees\tplatform\t\t562\.49\t2\n/)
    assert.match(human.stdout, /Total\t\t6187\.37\t6187\.37/)
    assert.is(verdict.ok, true)
    assert.match(lines.stdout, /All \d+ invariants hold/)
  })

  it('seals the journal, and compares it with a seal that was kept', async () => {
    const never = await books.affiliate(['ledger', 'verify'])
    assert.match(never.stdout, /The journal was never sealed/)
    const made = await books.affiliate(['ledger', 'seal'])
    assert.is(made.code, 0, made.stderr)
    const [digest = ''] = made.stdout.split('\n')
    assert.match(digest, /^[0-9a-f]{8}\.[0-9a-f]{64}$/)
    assert.match(made.stdout, /Sealed: number 1, of .*; 1 ledger moved/)
    const [again, kept, unknown, slip] = await Promise.all([
      books.json('ledger', 'seal'),
      books.affiliate(['ledger', 'verify', '--against', digest.toUpperCase()]),
      books.affiliate(['ledger', 'verify', '--against', `00000000.${'0'.repeat(64)}`]),
      books.affiliate(['ledger', 'verify', '--against', digest.slice(1)]),
    ])
    assert.equal([again.created, again.ledgers, again.seal.digest], [false, 0, digest])
    assert.is(kept.code, 0, kept.stderr)
    assert.match(kept.stdout, /as-sealed\t1\t0\t/)
    assert.match(kept.stdout, new RegExp(`Last seal: ${digest} \\(number 1, of `))
    assert.match(kept.stdout, /Key [0-9a-f]{8}, APP_KEY: \d+ entr(y|ies) since /)
    assert.equal([unknown.code, slip.code], [1, 2])
    assert.match(unknown.stderr, /^affiliate: The books do not hold: as-sealed; rows: digest 0{8}\.0{64}\n$/)
    assert.match(
      unknown.stdout,
      /not the digest of the one seal in this database\. Either the books were rewritten/,
    )
    assert.match(slip.stderr, /It must be a digest as "affiliate ledger seal" printed it/)
  })

  it('verifies what is new since the last verified seal, and all rows with --full', async () => {
    const verify = (...args: string[]) => books.json('ledger', 'verify', ...args)
    const [all, since] = [await verify('--full'), await verify()]
    assert.equal(
      [all.ok, all.full, all.since, all.mark_problem, all.mark_stored],
      [true, true, null, null, true],
    )
    assert.equal([since.ok, since.full, since.since.seal], [true, false, 1])
    assert.is(since.since.digest, since.last_seal.digest)
    const text = await books.affiliate(['ledger', 'verify'])
    assert.match(
      text.stdout,
      /\nChecked what is new since seal 1, [0-9a-f.]{73}, of .*, verified at .*\. All rows: --full\n/,
    )
    const { writer } = books.market.bed.testDatabase.database
    await writer.updateTable('watermarks').set({ value: 'forged' }).where('name', '=', 'verified').execute()
    const forged = await books.affiliate(['ledger', 'verify'])
    assert.is(forged.code, 0, forged.stderr)
    assert.match(forged.stdout, /The mark of the last verification cannot be used: it was changed/)
    assert.is((await verify()).full, false)
  })

  it('closes cycles, first only in words', async () => {
    const { items } = await books.json('billing', 'cycles', '--state', 'open')
    assert.is(items.length, 1)
    const [{ period_end: end, merchant }] = items
    assert.is(merchant.display_name, 'Chenab Lawn')
    const [dry, wrong, other] = await Promise.all([
      books.json('billing', 'close', '--as-of', end, '--dry-run'),
      books.affiliate(['billing', 'close', '--as-of', '2026-13-01']),
      books.json('billing', 'close', '--as-of', end, '--merchant', books.otherShop.merchantId, '--yes'),
    ])
    assert.equal([dry.items[0].outcome, dry.items[0].amount_due, dry.dry_run], ['closed', '6187.37', true])
    assert.is(wrong.code, 2)
    assert.match(wrong.stderr, /is not a time: give/)
    assert.equal(other.items, [])
    // A plain date is its midnight on the merchants' clock, which is when periods end.
    const date = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Asia/Karachi' }).format(Date.parse(end))
    const closed = await books.affiliate(['billing', 'close', '--as-of', date, '--yes'])
    assert.is(closed.code, 0, closed.stderr)
    assert.match(
      closed.stdout,
      /6187\.37\nThese cycles close before their period is over\.\n.*\n.* this cycle ends .*\n +Next cycle: .*\n1 closed, 0 extended/,
    )
    const again = await books.affiliate(['billing', 'close', '--as-of', date, '--yes'])
    assert.match(again.stdout, /No open cycle ends by .*\+05:00/)
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
    const dry = await books.json('payouts', 'run', '--dry-run')
    assert.equal([dry.items[0].outcome, dry.items[0].payout_id], ['paid_out', null])
    const run = await books.affiliate(['payouts', 'run', '--yes'])
    assert.match(run.stdout, /\t5624\.88\tpayout .*\nThe running service sends it to the processor\.\n$/)
    await drainUntilIdle()
    const [payout] = (await books.json('payouts', 'list', '--state', 'submitted')).items
    await market.settlePayout(payout.id, 'failed')
    await drainUntilIdle()
    const [story, failed, none] = await Promise.all([
      books.affiliate(['sales', 'explain', '6100000001009']),
      books.json('payouts', 'list', '--state', 'failed', '--creator', books.creatorId),
      books.json('payouts', 'list', '--creator', books.shop.merchantId),
    ])
    assert.match(
      story.stdout,
      new RegExp(`Payout ${payout.id} .*of Rs 5,624\\.88.* failed .*returned by the bank`),
    )
    assert.match(story.stdout, /goes out with the next payout run/)
    assert.is(failed.items[0].failure_reason, 'returned by the bank')
    assert.equal(none.items, [])
    // The one that failed must be looked up before it is replaced, and no processor runs here.
    const waits = await books.json('payouts', 'run', '--yes')
    assert.is(waits.items[0].why, 'processor_unavailable')
    assert.match((await books.affiliate(['payouts', 'run', '--yes'])).stdout, /\nNo payout was made\.\n$/)
    const reported = await books.affiliate(['payouts', 'run', '--dry-run'])
    assert.match(reported.stdout, /waits: the processor cannot be asked .*the next run asks again/)
  })

  onSqlite('grants a credit once, and not unasked', async () => {
    const credit = (amount: string, reference: string, ...more: string[]) =>
      books.affiliate([
        'billing',
        'credit',
        books.shop.merchantId,
        amount,
        '--reference',
        reference,
        '--reason',
        'returned',
        ...more,
      ])
    const unasked = await credit('100.50', 'CR-1')
    assert.is(unasked.code, 1)
    assert.match(unasked.stderr, /^affiliate: Not a terminal; confirm with --yes\.\n$/)
    const granted = await credit('100.50', 'CR-1', '--yes')
    assert.match(granted.stdout, /Rs 100\.50 credited to .* under CR-1/)
    const [again, other, tooMuch, creator] = await Promise.all([
      credit('100.50', 'CR-1', '--yes', '--json'),
      credit('100.51', 'CR-1', '--yes'),
      credit('999999', 'CR-2', '--yes'),
      books.affiliate([
        'billing',
        'credit',
        books.creatorId,
        '1',
        '--reference',
        'x',
        '--reason',
        'y',
        '--yes',
      ]),
    ])
    assert.is(JSON.parse(again.stdout).created, false)
    assert.match(other.stderr, /Reference CR-1 belongs to another credit/)
    assert.match(tooMuch.stderr, /At most Rs 6,086\.87 can be credited/)
    assert.match(creator.stderr, /is not a merchant/)
    assert.equal([other.code, tooMuch.code, creator.code], [1, 1, 1])
  })

  onSqlite('makes an admin, sets passwords, suspends and reinstates', async () => {
    const { affiliate } = books
    const made = await affiliate(
      ['users', 'create-admin', 'Op@X.pk', '--password-stdin'],
      {},
      'a long passphrase\nmore\n',
    )
    assert.match(made.stdout, /op@x\.pk is an admin now/)
    const [taken, short, weak, weaker, none, last, unknown] = await Promise.all([
      affiliate(['users', 'create-admin', 'op@x.pk', '--password-stdin'], {}, 'a long passphrase'),
      affiliate(['users', 'create-admin', 'o@x.pk', '--password-stdin'], {}, 'short\n'),
      affiliate(['users', 'create-admin', 'o@x.pk', '--password-stdin'], {}, 'password123\n'),
      affiliate(['users', 'set-password', 'op@x.pk', '--password-stdin', '--yes'], {}, 'op@x.pk-2026\n'),
      affiliate(['users', 'set-password', 'op@x.pk', '--password-stdin', '--yes']),
      affiliate(['users', 'suspend', 'op@x.pk', '--yes']),
      affiliate(['users', 'suspend', 'unknown@x.pk', '--json']),
    ])
    assert.equal(
      [taken, short, weak, weaker, none, last, unknown].map(({ code }) => code),
      [1, 2, 2, 2, 2, 1, 1],
    )
    assert.match(short.stderr, /^affiliate: password: must have at least 10 characters\n$/)
    assert.match(weak.stderr, /^affiliate: password: is one of the most used passwords/)
    assert.match(weaker.stderr, /^affiliate: password: must not be your e-mail/)
    assert.match(none.stderr, /No password came on stdin/)
    assert.match(last.stderr, /last active admin/)
    assert.is(JSON.parse(unknown.stderr).code, 'not_found')
    const set = await affiliate(
      ['users', 'set-password', 'op@x.pk', '--password-stdin', '--yes'],
      {},
      'another passphrase',
    )
    assert.match(set.stdout, /new password/)
    const suspend = ['users', 'suspend', books.creatorId, '--reason', 'own links', '--yes']
    assert.match((await affiliate(suspend)).stdout, /is suspended now/)
    assert.match((await affiliate(suspend)).stdout, /was suspended already; nothing changed/)
    const { items } = await books.json('users', 'list', '--suspended')
    assert.equal(
      items.map((user: { id: string }) => user.id),
      [books.creatorId],
    )
    assert.is((await books.json('users', 'reinstate', books.creatorId, '--yes')).changed, true)
    const { items: admins, more } = await books.json('users', 'list', '--role', 'admin')
    assert.equal([admins.length, admins[0].email, more], [1, 'op@x.pk', false])
  })

  it('backs up while the database is in use', async () => {
    const { folder, url } = books.market.bed.testDatabase
    if (dialect === 'sqlite') {
      const file = join(folder, 'copy.db')
      // So much that it is copied in several steps, and someone who writes all the while.
      const { writer } = books.market.bed.testDatabase.database
      await sql`create table ballast as select zeroblob(50000000) as filling`.execute(writer)
      await sql`create table ticks (at)`.execute(writer)
      const ticking = setInterval(() => sql`insert into ticks values (1)`.execute(writer), 1)
      const made = await books.json('db', 'backup', file).finally(() => clearInterval(ticking))
      const ticksIn = async (db: typeof writer) => (await sql`select at from ticks`.execute(db)).rows.length
      const ticks = await ticksIn(writer)
      await sql`drop table ballast`.execute(writer)
      await sql`drop table ticks`.execute(writer)
      assert.equal([made.file, made.bytes], [file, statSync(file).size])
      assert.is(statSync(file).mode & 0o777, 0o600)
      const copy = await openDatabase(`sqlite:${file}`, { create: false })
      const { length } = await copy.reader.selectFrom('sales').select('id').execute()
      const copied = await ticksIn(copy.reader)
      await copy.close()
      assert.is(length, 3)
      assert.ok(copied < ticks, 'no one wrote while it was made')
      const verifyCopy = (environment: Record<string, string> = {}) =>
        runHere(['ledger', 'verify', '--database-url', `sqlite:${file}`, '--json'], environment)
      const keyless = await verifyCopy({ APP_KEY: '' })
      assert.is(keyless.code, 1)
      assert.match(keyless.stderr, /only be checked with the key that it was made with\. Set APP_KEY/)
      const keyed = await verifyCopy()
      assert.is(keyed.code, 0, keyed.stderr)
      assert.is(JSON.parse(keyed.stdout).ok, true)
      const again = await books.affiliate(['db', 'backup', file])
      assert.match(again.stderr, /exists already/)
      return
    }
    const file = join(folder, 'copy.dump')
    const missing = await books.affiliate(['db', 'backup', file], { PATH: folder })
    assert.is(missing.code, 1)
    assert.match(missing.stderr, /pg_dump is not on PATH/)
    assert.not(missing.stderr.includes(new URL(url).password))
    assert.not(existsSync(file))
    const pretended = join(folder, 'pg_dump')
    writeFileSync(pretended, '#!/bin/sh\necho "$PGPASSWORD $*" > "$3"\n')
    chmodSync(pretended, 0o700)
    const made = await books.affiliate(['db', 'backup', file], { PATH: `${folder}:/bin:/usr/bin` })
    assert.is(made.code, 0, made.stderr)
    assert.ok(statSync(file).size > 0)
    writeFileSync(pretended, '#!/bin/sh\necho "pg_dump: error: server version mismatch" >&2\nexit 1\n')
    const failed = await books.affiliate(['db', 'backup', `${file}2`], { PATH: `${folder}:/bin:/usr/bin` })
    assert.match(failed.stderr, /^affiliate: pg_dump failed: pg_dump: error: server version mismatch\n$/)
    assert.not(existsSync(`${file}2`))
  })

  it('names the rows when one has been tampered with', async () => {
    const { database } = books.market.bed.testDatabase
    await removeGuards(database)
    const sale = await database.reader
      .selectFrom('sales')
      .select('id')
      .where('order_id', '=', '6100000001009')
      .executeTakeFirstOrThrow()
    await database.writer.updateTable('sales').set({ commission: 62_489 }).where('id', '=', sale.id).execute()
    const [human, json] = await Promise.all([
      books.affiliate(['ledger', 'verify']),
      books.affiliate(['ledger', 'verify', '--json']),
    ])
    assert.equal([human.code, json.code], [1, 1])
    assert.match(
      human.stderr,
      new RegExp(`^affiliate: The books do not hold: .*sales-in-journal.*${sale.id}.*\n$`),
    )
    assert.match(human.stdout, new RegExp(`${sale.id}: `))
    assert.is(JSON.parse(json.stdout).ok, false)
  })

  it.run()
}
