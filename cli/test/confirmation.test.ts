// long
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { changedTables, tableDigests } from '../../server/test/authorization/digest.ts'
import { type Books, openBooks } from './books.ts'

const it = suite('commands that cannot be undone')
let books: Books

it.before(async () => {
  books = await openBooks('sqlite')
})
it.after(() => books.market.close())

const UNASKED = /^affiliate: Not a terminal; confirm with --yes\.\n$/
const UNKNOWN_ID = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'

it('ask, and need --yes where there is no terminal', async () => {
  const { market, shop, otherShop, creatorId } = books
  await market.processorSays('invoice.paid_in_full', {})
  await market.drainUntilIdle()
  const suspended = await market.addCreator('Suspended')
  const first = async (...list: string[]) => (await books.json(...list)).items[0].id
  await books.json('users', 'suspend', suspended.userId, '--yes')
  const commands = [
    ['billing', 'close', '--as-of', '2099-01-01'],
    ['billing', 'credit', shop.merchantId, '10', '--reference', 'CR-1', '--reason', 'returned'],
    ['billing', 'reissue', await first('billing', 'cycles', '--state', 'open')],
    ['offers', 'vet', await first('offers', 'list', '--status', 'live'), '--approve'],
    ['stores', 'release', `s${otherShop.merchantId}.myshopify.com`],
    ['users', 'suspend', creatorId],
    ['users', 'reinstate', suspended.userId],
    ['sessions', 'end', creatorId],
    ['webhooks', 'retry', await first('webhooks', 'events', '--state', 'set_aside')],
    ['webhooks', 'retry', '--type', 'invoice.paid_in_full'],
  ]
  const { reader } = market.platform.database
  const before = await tableDigests(reader)
  for (const words of commands) {
    assert.is((await books.refuses(words, UNASKED)).stdout, '')
    await books.refuses([...words, '--json'], /"detail":"Not a terminal; confirm with --yes\."/)
  }
  const password = ['users', 'set-password', creatorId, '--password-stdin']
  const unasked = await books.affiliate(password, {}, 'a long passphrase\n')
  assert.match(unasked.stderr, UNASKED)
  assert.equal(changedTables(before, await tableDigests(reader)), [])
})

it('look whether it exists before they ask', async () => {
  const domain = 'never-connected.myshopify.com'
  for (const [words, why] of [
    [['billing', 'close', '--merchant', UNKNOWN_ID], /User .*not found/],
    [['billing', 'credit', UNKNOWN_ID, '10', '--reference', 'CR-1', '--reason', 'x'], /User .*not found/],
    [['billing', 'reissue', UNKNOWN_ID], /Billing cycle .* not found/],
    [['payouts', 'retry', UNKNOWN_ID], /Payout .* not found/],
    [['offers', 'vet', UNKNOWN_ID, '--approve'], /Offer .*not found/],
    [['stores', 'release', domain], /No store in use/],
    [['users', 'suspend', UNKNOWN_ID], /User .*not found/],
    [['users', 'reinstate', UNKNOWN_ID], /User .*not found/],
    [['sessions', 'end', UNKNOWN_ID], /User .*not found/],
    [['users', 'reset-second-factor', UNKNOWN_ID, '--reason', 'x'], /User .*not found/],
    [['users', 'set-password', UNKNOWN_ID, '--password-stdin'], /User .*not found/],
    [['webhooks', 'retry', UNKNOWN_ID], /no event/],
    [['webhooks', 'retry', '--type', 'never.seen'], /No event of type never\.seen waits/],
  ] as const) {
    assert.not.match((await books.refuses(words, why)).stderr, /--yes/, words.join(' '))
  }
})

it('do not ask for a dry run, or when there is nothing to do', async () => {
  for (const words of [
    ['billing', 'close', '--as-of', '2099-01-01', '--dry-run'],
    ['billing', 'close', '--as-of', '2020-01-01'],
    ['payouts', 'run', '--dry-run'],
    ['payouts', 'run'],
    ['users', 'suspend', books.creatorId, '--dry-run'],
    ['users', 'reinstate', books.creatorId],
  ])
    await books.says(words)
})

it('say before they ask what an early close does to the next cycle', async () => {
  const { screen, code } = await books.type(['billing', 'close', '--as-of', '2099-01-01'], {
    columns: 80,
    typed: [{ after: /\[y\/N\] /, keys: 'n\n' }],
  })
  assert.is(code, 1)
  // The terminal is narrow, so lines are broken between words.
  const text = screen.replaceAll(/\s+/g, ' ')
  assert.match(text, /Sales accepted from now on are billed in the next cycle:/)
  assert.match(text, /this cycle ends \d{4}-\d\d-01 00:00:00 \+05:00\./)
  assert.match(text, /Next cycle: \d{4}-\d\d-01 00:00:00 \+05:00 to \d{4}-\d\d-01 00:00:00 \+05:00\./)
  assert.match(screen, /Close 1 billing cycle, Rs 6,187\.37 due in all\? It cannot be undone\. \[y\/N\]/)
  assert.match(screen, /Nothing was done\./)
})

it('end with 130 at Ctrl-C', async () => {
  const { screen, code } = await books.type(['billing', 'close', '--as-of', '2099-01-01'], {
    typed: [{ after: /\[y\/N\] /, keys: '\u0003' }],
  })
  assert.is(code, 130)
  assert.match(screen, /Interrupted; nothing was done\./)
})

it('make payouts once they are confirmed', async () => {
  const { market } = books
  const [{ period_end: end }] = (await books.json('billing', 'cycles', '--state', 'open')).items
  await books.json('billing', 'close', '--as-of', end, '--yes')
  market.clock.set(new Date().toISOString())
  await market.drainUntilIdle()
  await market.confirmPayment((await books.json('billing', 'cycles', '--state', 'closed')).items[0].id)
  await market.drainUntilIdle()
  await books.refuses(['payouts', 'run'], UNASKED)
  const { screen, code } = await books.type(['payouts', 'run'], {
    typed: [{ after: /Make 1 payout, Rs 5,624\.88 in all\? .* \[y\/N\] /, keys: 'y\n' }],
  })
  assert.is(code, 0, screen)
  const [payout] = (await books.json('payouts', 'list')).items
  assert.equal([payout.amount, payout.state], ['5624.88', 'pending'])
  await books.refuses(['payouts', 'retry', payout.id], UNASKED)
})

it('ask before a password is typed', async () => {
  const question = /Set a new password for creator .*\? All sessions and API keys end\. \[y\/N\] /
  const agreed = { after: question, keys: 'y\n' }
  const { screen, code } = await books.type(['users', 'set-password', books.creatorId], {
    typed: [
      agreed,
      { after: /Password: /, keys: 'a long passphrase\n' },
      { after: /Password again: /, keys: 'a long passphrase\n' },
    ],
  })
  assert.is(code, 0, screen)
  assert.match(screen, /has a new password/)
  assert.not.match(screen, /a long passphrase/)
})

it('change nothing when the passwords differ, when none is typed and after Ctrl-C', async () => {
  const { reader } = books.market.platform.database
  const before = await tableDigests(reader)
  for (const [first, again, code, why] of [
    ['a long passphrase\n', 'another passphrase\n', 1, /The passwords differ; nothing was done/],
    ['\u0004', null, 2, /No password was typed/],
    ['secret\u0003', null, 130, /Interrupted; nothing was done/],
  ] as const) {
    const ended = await books.type(['users', 'create-admin', 'typed@example.pk'], {
      typed: [
        { after: /Password: /, keys: first },
        ...(again === null ? [] : [{ after: /Password again: /, keys: again }]),
      ],
    })
    assert.is(ended.code, code, ended.screen)
    assert.match(ended.screen, why)
    assert.not.match(ended.screen, /passphrase|secret/)
  }
  assert.equal(changedTables(before, await tableDigests(reader)), [])
})

it.run()
