// long
import * as assert from 'uvu/assert'
import { createOffer } from '../../server/offers/offers.service.ts'
import { OFFER } from '../../server/test/testkit/listings.ts'
import { openFlagsOf } from '../../server/test/testkit/marketplace.ts'
import { assertNone, pluck } from '../../server/test/testkit/pluck.ts'
import { rowsOf } from '../../server/test/testkit/rows.ts'
import { suiteOverBooks } from '../test/books.ts'
import type { Typed } from '../test/run-here.ts'

const { it, books } = suiteOverBooks('the walk through what is flagged')

const CHOICES = /\[q\]uit > /
const NOTE = /What was found and done\? /
const answer = (keys: string): Typed => ({ after: CHOICES, keys: `${keys}\n` })

it('shows evidence and subject, suspends, vets, skips and resolves, the urgent ones first', async () => {
  const { platform } = books.market
  const merchant = books.otherShop.merchantId
  await createOffer(platform, merchant, { ...OFFER, title: 'High one', commission_rate: 4500 })
  const { code, screen } = await books.type(['flagged'], {
    typed: [
      { after: /1 of 2(.|\n)*event_set_aside(.|\n)*malformed(.|\n)*> /, keys: 'o\n' },
      { after: /affiliate webhooks show .*(.|\n)*> /, keys: 'z\n' },
      { after: /Unknown choice "z"(.|\n)*> /, keys: 's\n' },
      { after: /2 of 2(.|\n)*offer_vetting(.|\n)*45 % commission(.|\n)*> /, keys: 'u\n' },
      { after: /1 session|No session(.|\n)*\[y\/N\] /, keys: 'n\n' },
      { after: /Nothing was changed(.|\n)*> /, keys: 'u\n' },
      { after: /live offers? will leave the catalogue(.|\n)*\[y\/N\] /, keys: 'y\n' },
      { after: /is suspended now\. The flag stays open(.|\n)*> /, keys: 'v\n' },
      { after: /High one at 45 %: \[a\]pprove or \[x\] reject\? /, keys: 'x\n' },
    ],
  })
  assert.is(code, 0, screen)
  assert.match(screen, /The offer is rejected at 45 %\.\n\n2 of 2 reviewed, 1 resolved\./)
  const audits = await rowsOf(platform, 'audit_entries', { actor: 'operator' })
  assert.equal(pluck(audits, 'action'), ['user.suspend', 'offer.vet'])
  assert.match((await openFlagsOf(platform)).join('\n'), /^event_set_aside .*$/)
})

it('is left at any question without harm, and taken up again', async () => {
  const left: [string[], Typed[]][] = [
    [[], [{ after: CHOICES, keys: '\u0003' }]],
    [[], [answer('r'), { after: NOTE, keys: '\u0004' }]],
    [['--severity', 'high'], [answer('q')]],
  ]
  for (const [more, typed] of left) {
    const { code, screen } = await books.type(['flagged', 'walk', ...more], { typed })
    assert.is(code, 0)
    assert.match(screen, /1 of 1 reviewed, 0 resolved/)
  }
  const { screen } = await books.type(['flagged', 'walk'], {
    typed: [
      answer('r'),
      { after: NOTE, keys: '\n' },
      { after: /A note of 1 to 2000 characters is needed(.|\n)*> /, keys: 'r\n' },
      { after: NOTE, keys: 'informed the shop\n' },
    ],
  })
  assert.match(screen, /Resolved\.\n\n1 of 1 reviewed, 1 resolved/)
  assert.equal(await openFlagsOf(books.market.platform), [])
  assert.match((await books.type(['flagged'])).screen, /Nothing waits for a person\./)
})

it('is refused where no one can be asked', async () => {
  for (const words of [['flagged'], ['flagged', 'walk', '--json']]) {
    const why = /needs a terminal\. Use .{1,2}affiliate flagged list/
    assert.is((await books.refuses(words, why, 2)).stdout, '')
  }
})

it('tries every event of a type again that no rule mapped', async () => {
  const { market } = books
  for (const n of [1, 2]) await market.processorSays('invoice.paid_in_full', { n })
  await market.drainUntilIdle()
  const retry = ['webhooks', 'retry', '--type', 'invoice.paid_in_full']
  await books.refuses(retry, /Not a terminal; confirm with --yes/)
  const unmapped = /No rule in PROCESSOR_EVENTS maps(.|\n)*event_type +invoice\.paid_in_full(.|\n)*> /
  const { code, screen } = await books.type(['flagged', 'walk', '--kind', 'processor_event_unmapped'], {
    typed: [{ after: unmapped, keys: 't\n' }],
  })
  assert.is(code, 0, screen)
  assert.match(screen, /tries 2 events of this type again/)
  assertNone(await openFlagsOf(market.platform), (flag) => flag.startsWith('processor_event_unmapped'))
})

it.run()
