// long
import * as assert from 'uvu/assert'
import { changedTables, tableDigests } from '../../server/test/authorization/digest.ts'
import { EXAMPLE_ID } from '../command.ts'
import { suiteOverBooks } from './books.ts'

const { it, books } = suiteOverBooks('commands that cannot be undone')

it('look whether it exists before they ask', async () => {
  for (const [words, why] of [
    [`billing close --merchant ${EXAMPLE_ID}`, /User .*not found/],
    [`billing credit ${EXAMPLE_ID} 10 --reference CR-1 --reason x`, /User .*not found/],
    [`billing reissue ${EXAMPLE_ID}`, /Billing cycle .* not found/],
    [`payouts retry ${EXAMPLE_ID}`, /Payout .* not found/],
    [`offers vet ${EXAMPLE_ID} --approve`, /Offer .*not found/],
    ['stores release never-connected.myshopify.com', /No store in use/],
    [`users suspend ${EXAMPLE_ID}`, /User .*not found/],
    [`users reinstate ${EXAMPLE_ID}`, /User .*not found/],
    [`sessions end ${EXAMPLE_ID}`, /User .*not found/],
    [`users reset-second-factor ${EXAMPLE_ID} --reason x`, /User .*not found/],
    [`users set-password ${EXAMPLE_ID} --password-stdin`, /User .*not found/],
    [`webhooks retry ${EXAMPLE_ID}`, /no event/],
    ['webhooks retry --type never.seen', /No event of type never\.seen waits/],
  ] as const)
    assert.not.match((await books.refuses(words.split(' '), why)).stderr, /--yes/, words)
})

it('do not ask for a dry run, or when there is nothing to do', async () => {
  for (const words of [
    'billing close --as-of 2099-01-01 --dry-run',
    'billing close --as-of 2020-01-01',
    'payouts run --dry-run',
    'payouts run',
    `users suspend ${books.creatorId} --dry-run`,
    `users reinstate ${books.creatorId}`,
  ])
    await books.says(words.split(' '))
})

it('say before they ask what an early close does to the next cycle, and end with 130 at Ctrl-C', async () => {
  const question = /Close 1 billing cycle, Rs 6,187\.37 due in all\? It cannot be undone\. \[y\/N\]/
  const answer = (keys: string) =>
    books.type(['billing', 'close', '--as-of', '2099-01-01'], {
      columns: 80,
      typed: [{ after: question, keys }],
    })
  const { screen, code } = await answer('n\n')
  assert.is(code, 1)
  // The terminal is narrow, so lines are broken between words.
  const text = screen.replaceAll(/\s+/g, ' ')
  assert.match(text, /Sales accepted from now on are billed in the next cycle:/)
  assert.match(text, /this cycle ends \d{4}-\d\d-01 00:00:00 \+05:00\./)
  assert.match(text, /Next cycle: \d{4}-\d\d-01 00:00:00 \+05:00 to \d{4}-\d\d-01 00:00:00 \+05:00\./)
  assert.match(screen, /Nothing was done\./)
  const interrupted = await answer('\u0003')
  assert.is(interrupted.code, 130)
  assert.match(interrupted.screen, /Interrupted; nothing was done\./)
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
