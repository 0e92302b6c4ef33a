// long
import { stripVTControlCharacters } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { raiseFlag } from '../../server/flags/flags.service.ts'
import { setCoupon } from '../../server/links/coupons.service.ts'
import { linkOfSlug } from '../../server/links/links.service.ts'
import { RefusedDeliveries } from '../../server/stores/refused-deliveries.service.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { addUser, changeUser, logIn, queuedMail } from '../../server/test/testkit/people.ts'
import { type Books, openBooks } from './books.ts'

const UNKNOWN_ID = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'
const COLUMNS = 80
/** Lines of a terminal of usual height. */
const LINES = 40
/** What must not reach a terminal. */
const RAW = ['\u001b[2J', '\u202e', '\u0007']
/** Steers a terminal, and turns the direction of what follows. */
const HOSTILE = 'Sana\u001b[2J\u202eMirza\u0007'

for (const dialect of testDialects()) {
  const it = suite(`what one screen shows on ${dialect}`)
  let books: Books
  let offerId: string
  let payoutId: string
  it.before(async () => {
    books = await openBooks(dialect)
    const { market, shop, slug, creatorId } = books
    const { platform } = market
    const link = await linkOfSlug(platform, platform.database.reader, slug)
    assert.ok(link)
    offerId = link.offer_id
    await market.earn(shop, link, 1_000_000)
    payoutId = await market.payOut('failed')
    await setCoupon(platform, { slug, actor: shop.merchantId, code: 'SANA10' })
    await changeUser(platform, creatorId, { display_name: HOSTILE })
    await queuedMail(platform, creatorId)
    for (const _ of [1, 2, 3, 4]) {
      await logIn(platform, { userId: creatorId, role: 'creator', sessionId: platform.ids.next() })
    }
    const about = { subjectType: 'user', subjectId: creatorId, evidence: {} } as const
    const flag = { kind: 'self_purchase', summary: `${HOSTILE} bought.`, ...about } as const
    await platform.database.transaction((tx) => raiseFlag(platform, tx, flag))
  })
  it.after(() => books.market.close())

  /** What the command shows at a terminal: it fits, and nothing of others' texts reaches the terminal raw. */
  const screenOf = async (...args: string[]): Promise<string> => {
    const { code, screen } = await books.type(args, { columns: COLUMNS })
    assert.is(code, 0, screen)
    const lines = stripVTControlCharacters(screen).trimEnd().split('\n')
    assert.equal(
      lines.filter((line) => [...line].length > COLUMNS),
      [],
      'fits the width',
    )
    assert.ok(lines.length <= LINES, `${lines.length} lines:\n${screen}`)
    assert.equal(
      RAW.filter((text) => screen.includes(text)),
      [],
      'nothing raw',
    )
    return lines.join('\n')
  }

  it('an account: balance, links, sales, payouts, sessions, mails and flags', async () => {
    const screen = await screenOf('users', 'show', books.creatorId)
    assert.match(screen, /^\S+@example\.com, creator\nName +Sana\ufffd\[2J\ufffdMirza\ufffd\n/)
    assert.match(screen, /\nState +active\n/)
    assert.match(screen, /\nPays to +IBAN ending 6702, /)
    // Both orders were in the cycle that was charged, and the payout of all of it failed.
    assert.match(screen, /\nBalance +Rs 6,874\.88 released, Rs 0\.00 pending\nPaid out +Rs 0\.00 paid/)
    assert.match(screen, new RegExp(`\nLinks .*\n${books.slug} .* Rs 6,874\\.88\n`))
    assert.match(screen, /\nSales .*\n#?\S+ +accepted +Rs 1,250\.00 /)
    assert.match(screen, /\nPayouts .*\nfailed +Rs 6,874\.88 /)
    assert.match(screen, /\nSessions, newest .*\n(.*\n){3}\n/)
    assert.match(screen, /\nMails.*\n/)
    assert.match(screen, /\nOpen flags .*\nself_purchase +medium +Sana\ufffd/)
    const whole = await books.json('users', 'show', `${books.creatorId}@example.com`, '--limit', '100')
    assert.equal(
      [whole.display_name, whole.suspended_at, whole.stores, whole.balance.released],
      [HOSTILE, null, null, '6874.88'],
    )
    assert.equal([whole.links.items.length, whole.sales.items.length, whole.sessions.items.length], [1, 3, 4])
    assert.is(whole.sessions.next_cursor, null)
    assert.equal([whole.payouts.items[0].id, whole.open_flags.items.length], [payoutId, 1])
    const { stdout } = await books.affiliate(['users', 'show', books.creatorId, '--json'])
    assert.equal(
      RAW.filter((text) => stdout.includes(text)),
      [],
      'nothing raw',
    )
    await books.refuses(['users', 'show', 'unknown@example.com'], /User unknown@example\.com not found/)
  })

  it('a merchant: stores, offers and what is owed; an admin has neither', async () => {
    const merchant = await screenOf('users', 'show', books.shop.merchantId)
    assert.match(merchant, new RegExp(`\nStores .*\ns${books.shop.merchantId}\\.myshopify\\.com `))
    assert.match(merchant, /\nOffers .*\n.* 12\.5 % +live +not_required\n/)
    assert.match(merchant, /\nOwes +Rs 0\.00 invoiced, Rs 0\.00 in the open cycle\nCredit +Rs 0\.00\n/)
    assert.match(merchant, /\nNone: .*sessions/)
    const admin = await addUser(books.market.platform, 'admin')
    const shown = await books.json('users', 'show', admin.userId)
    assert.equal([shown.links, shown.sales, shown.payouts, shown.balance], [null, null, null, undefined])
    assert.match(await screenOf('users', 'show', admin.userId), /\nNone: sessions, mails, open flags$/)
  })

  it('an offer: terms, statuses, applications, links and sales', async () => {
    const screen = await screenOf('offers', 'show', offerId)
    assert.match(screen, /\nStatus +live, vetting not_required\nCommission +12\.5 %, orders within 30 days /)
    assert.match(screen, /\nStatuses .*\nlive .*\ndraft .*\n\nApplications .*\nSana\ufffd/)
    const whole = await books.json('offers', 'show', offerId)
    assert.equal(
      whole.statuses.map((one: { status: string }) => one.status),
      ['live', 'draft'],
    )
    assert.equal([whole.id, whole.merchant.id, whole.links.items.length], [offerId, books.shop.merchantId, 1])
    assert.is(whole.sales.items.length, 3)
    await books.refuses(['offers', 'show', UNKNOWN_ID], /Offer not found/)
    await books.refuses(['offers', 'show', 'x'], /is not the id of an offer/, 2)
  })

  it('a link: figures, codes and sales, however its slug is typed', async () => {
    const screen = await screenOf('links', 'show', `${books.slug.toUpperCase()}/`)
    assert.match(screen, /\nVisits +3, \d unique\nAccepted +3, Rs 6,874\.88 of commission\n/)
    assert.match(screen, /\nCodes .*\nSANA10 +\S+ \S+ +–\n/)
    const whole = await books.json('links', 'show', books.slug)
    assert.equal([whole.coupon_code, whole.coupons[0].ends_at], ['SANA10', null])
    assert.equal([whole.creator.display_name, whole.sales.items.length], [HOSTILE, 3])
    await books.refuses(['links', 'show', '2222222222'], /Affiliate link not found/)
  })

  it('a payout: where it went, the calls, and what it carries', async () => {
    const screen = await screenOf('payouts', 'show', payoutId)
    assert.match(screen, /^Payout of Rs 6,874\.88, failed\nCreator .*\nPays to +IBAN ending 6702, /)
    assert.match(screen, /\nCalls .*\n.* created +1 /)
    assert.match(screen, /\nCarries .*\n.* Rs 6,874\.88 +[0-9a-f]{8}\n/)
    const whole = await books.json('payouts', 'show', payoutId)
    assert.equal(
      [whole.amount, whole.destination.iban_last4, whole.calls.length, whole.lines.length],
      ['6874.88', '6702', 1, 1],
    )
    assert.equal([whole.lines[0].merchant.id, whole.lines[0].amount], [books.shop.merchantId, '6874.88'])
    await books.refuses(['payouts', 'show', UNKNOWN_ID], /Payout .* not found/)
  })

  it('the audit trail: by actor, by subject and since when', async () => {
    const { creatorId, shop } = books
    const person = ['--subject', `${creatorId}@example.com`]
    await books.json('users', 'suspend', creatorId, '--reason', `fake ${'posts '.repeat(30)}`, '--yes')
    await books.json('users', 'reinstate', creatorId, '--yes')
    const actions = async (...options: string[]) =>
      (await books.json('audit', 'list', ...options)).items.map((row: { action: string }) => row.action)
    assert.equal(await actions(...person, '--actor', 'operator'), ['user.reinstate', 'user.suspend'])
    assert.equal(await actions('--actor', shop.merchantId), ['link.coupon', 'store.connect'])
    assert.equal(await actions('--since', '2100-01-01'), [])
    const [first] = (await books.json('audit', 'list', ...person, '--limit', '1')).items
    assert.equal(
      [first.action, first.actor, first.before, first.after],
      ['user.reinstate', 'operator', { suspended: true }, { suspended: false }],
    )
    const { next_cursor } = await books.json('audit', 'list', ...person, '--limit', '1')
    assert.equal(await actions(...person, '--limit', '1', '--cursor', next_cursor), ['user.suspend'])
    assert.match(await screenOf('audit', 'list', ...person), /operator +user\.suspend +\S+ +fake posts/)
    assert.is((await books.json('flagged', 'list', '--subject', creatorId)).items.length, 1)
    assert.is((await books.json('mail', 'list', '--user', shop.merchantId)).items.length > 0, true)
    const none = await books.affiliate(['audit', 'list', '--subject', UNKNOWN_ID])
    assert.match(none.stdout, /^Time\tActor\t.*\n$/)
    assert.is(none.stderr, 'No audit entries.\n')
    assert.is(await screenOf('audit', 'list', '--subject', UNKNOWN_ID), 'No audit entries.')
    await books.refuses(['audit', 'list', '--actor', 'x@example.com'], /User x@example\.com not found/)
    await books.refuses(['audit', 'list', '--since', 'yesterday'], /is not a time/, 2)
  })

  it('stores whose deliveries are refused, and domains that no merchant claims', async () => {
    const { platform, clock } = books.market
    const domain = `s${books.shop.merchantId}.myshopify.com`
    clock.pass(1000)
    const refused = new RefusedDeliveries(platform)
    for (const _ of [1, 2, 3]) refused.note(domain, 'wrong_signature')
    for (const _ of [1, 2]) refused.noteUnclaimed('kurtta.myshopify.com')
    await refused.flush({ all: true })
    const { code, stdout, stderr } = await books.affiliate(['stores', 'check', '--json'])
    const { rejecting, unclaimed } = JSON.parse(stdout)
    assert.is(code, 1, stderr)
    assert.equal(
      [rejecting.length, rejecting[0].shop_domain, rejecting[0].last_refusal.reason],
      [1, domain, 'wrong_signature'],
    )
    assert.equal(
      [unclaimed.length, unclaimed[0].shop_domain, unclaimed[0].deliveries],
      [1, 'kurtta.myshopify.com', 2],
    )
    const text = await books.refuses(['stores', 'check'], new RegExp(`affiliate stores check ${domain}`))
    assert.match(text.stdout, /\nkurtta\.myshopify\.com\t2\t/)
    await books.refuses(['stores', 'check', 'kurtta.myshopify.com'], /that were refused: 2\./)
  })

  it.run()
}
