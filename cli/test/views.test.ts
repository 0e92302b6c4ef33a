// long
import { stripVTControlCharacters } from 'node:util'
import * as assert from 'uvu/assert'
import { setCoupon } from '../../server/links/coupons.service.ts'
import { linkOfSlug } from '../../server/links/links.service.ts'
import { RefusedDeliveries } from '../../server/stores/refused-deliveries.service.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { addUser, changeUser, logIn, queuedMail } from '../../server/test/testkit/people.ts'
import { assertNone, pluck, pluckAll } from '../../server/test/testkit/pluck.ts'
import { EXAMPLE_ID } from '../command.ts'
import { suiteOverBooks } from './books.ts'

const COLUMNS = 80
/** Lines of a terminal of usual height. */
const LINES = 40
/** What must not reach a terminal. */
const RAW = ['\u001b[2J', '\u202e', '\u0007']
/** Steers a terminal, and turns the direction of what follows. */
const HOSTILE = 'Sana\u001b[2J\u202eMirza\u0007'

for (const dialect of testDialects()) {
  const { it, books } = suiteOverBooks(`what one screen shows on ${dialect}`, dialect)
  let offerId: string
  let payoutId: string
  it.before(async () => {
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
    await books.flagCreator(`${HOSTILE} bought.`)
  })

  /** What the command shows at a terminal: it fits, and nothing of others' texts reaches the terminal raw. */
  const screenOf = async (...args: string[]): Promise<string> => {
    const { code, screen } = await books.type(args, { columns: COLUMNS })
    assert.is(code, 0, screen)
    const lines = stripVTControlCharacters(screen).trimEnd().split('\n')
    assertNone(lines, (line) => [...line].length > COLUMNS, 'fits the width')
    assert.ok(lines.length <= LINES, `${lines.length} lines:\n${screen}`)
    assertNone(RAW, (text) => screen.includes(text), 'nothing raw')
    return lines.join('\n')
  }

  it('an account: balance, links, sales, payouts, sessions, mails and flags', async () => {
    const screen = await screenOf('users', 'show', books.creatorId)
    for (const part of [
      /^\S+@example\.com, creator\nName +Sana\ufffd\[2J\ufffdMirza\ufffd\n/,
      /\nState +active\n/,
      /\nPays to +IBAN ending 6702, /,
      // Both orders were in the cycle that was charged, and the payout of all of it failed.
      /\nBalance +Rs 6,874\.88 released, Rs 0\.00 pending\nPaid out +Rs 0\.00 paid/,
      new RegExp(`\nLinks .*\n${books.slug} .* Rs 6,874\\.88\n`),
      /\nSales .*\n#?\S+ +accepted +Rs 1,250\.00 /,
      /\nPayouts .*\nfailed +Rs 6,874\.88 /,
      /\nSessions, newest .*\n(.*\n){3}\n/,
      /\nMails.*\n/,
      /\nOpen flags .*\nself_purchase +medium +Sana\ufffd/,
    ])
      assert.match(screen, part)
    const whole = await books.json('users', 'show', `${books.creatorId}@example.com`, '--limit', '100')
    assert.equal([whole.display_name, whole.stores, whole.balance.released], [HOSTILE, null, '6874.88'])
    assert.equal([whole.links.items.length, whole.sales.items.length, whole.sessions.items.length], [1, 3, 4])
    assert.equal([whole.payouts.items[0].id, whole.open_flags.items.length], [payoutId, 1])
    const { stdout } = await books.affiliate(['users', 'show', books.creatorId, '--json'])
    assertNone(RAW, (text) => stdout.includes(text), 'nothing raw')
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
    assert.equal(pluck(whole.statuses, 'status'), ['live', 'draft'])
    assert.equal([whole.id, whole.links.items.length, whole.sales.items.length], [offerId, 1, 3])
    await books.refuses(['offers', 'show', EXAMPLE_ID], /Offer not found/)
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
    const { amount, destination, calls, lines } = await books.json('payouts', 'show', payoutId)
    assert.equal([amount, destination.iban_last4, calls.length], ['6874.88', '6702', 1])
    assert.equal([lines.length, lines[0].merchant.id], [1, books.shop.merchantId])
    await books.refuses(['payouts', 'show', EXAMPLE_ID], /Payout .* not found/)
  })

  it('the audit trail: by actor, by subject and since when', async () => {
    const { creatorId, shop } = books
    const person = ['--subject', `${creatorId}@example.com`]
    await books.json('users', 'suspend', creatorId, '--reason', `fake ${'posts '.repeat(30)}`, '--yes')
    await books.json('users', 'reinstate', creatorId, '--yes')
    const actions = async (...options: string[]) =>
      pluck((await books.json('audit', 'list', ...options)).items, 'action')
    assert.equal(await actions(...person, '--actor', 'operator'), ['user.reinstate', 'user.suspend'])
    assert.equal(await actions('--actor', shop.merchantId), ['link.coupon', 'store.connect'])
    assert.equal(await actions('--since', '2100-01-01'), [])
    const { items, next_cursor } = await books.json('audit', 'list', ...person, '--limit', '1')
    assert.equal(pluckAll(items, 'action', 'actor', 'before', 'after'), [
      ['user.reinstate', 'operator', { suspended: true }, { suspended: false }],
    ])
    assert.equal(await actions(...person, '--limit', '1', '--cursor', next_cursor), ['user.suspend'])
    assert.match(await screenOf('audit', 'list', ...person), /operator +user\.suspend +\S+ +fake posts/)
    assert.is((await books.json('flagged', 'list', '--subject', creatorId)).items.length, 1)
    assert.is((await books.json('mail', 'list', '--user', shop.merchantId)).items.length > 0, true)
    await books.refuses(['audit', 'list', '--subject', EXAMPLE_ID], /^No audit entries\.\n$/, 0)
    assert.is(await screenOf('audit', 'list', '--subject', EXAMPLE_ID), 'No audit entries.')
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
    const json = await books.refuses(['stores', 'check', '--json'], /To see what to do/)
    const { rejecting, unclaimed } = JSON.parse(json.stdout)
    assert.equal(
      [pluck(rejecting, 'shop_domain'), rejecting[0].last_refusal.reason],
      [[domain], 'wrong_signature'],
    )
    assert.equal(pluckAll(unclaimed, 'shop_domain', 'deliveries'), [['kurtta.myshopify.com', 2]])
    const text = await books.refuses(['stores', 'check'], new RegExp(`affiliate stores check ${domain}`))
    assert.match(text.stdout, /\nkurtta\.myshopify\.com\t2\t/)
    await books.refuses(['stores', 'check', 'kurtta.myshopify.com'], /that were refused: 2\./)
  })

  it.run()
}
