import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { decideOutcome, type OutcomeFacts } from './outcome-event.rule.ts'

const decide = (standing: OutcomeFacts['standing'], amount = 500, currency = 'PKR') =>
  decideOutcome({ standing, amount: 500, event: { amount, currency } })

test('only an open one is settled, and the same outcome again changes nothing', () => {
  assert.is(decide('open'), 'settle')
  assert.is(decide('same'), 'already')
})

test('another amount or currency is flagged, also in a repeated event', () => {
  for (const standing of ['open', 'same'] as const) {
    assert.equal([decide(standing, 499), decide(standing, 50_000)], ['amount_mismatch', 'amount_mismatch'])
    for (const currency of ['USD', 'pkr', 'PKR ']) {
      assert.is(decide(standing, 500, currency), 'currency_mismatch')
    }
  }
})

test('another outcome is flagged, and an early event tried again, whatever the amount', () => {
  assert.equal([decide('other'), decide('other', 7, 'USD')], ['other_outcome', 'other_outcome'])
  assert.equal([decide('early'), decide('early', 7, 'USD')], ['retry_later', 'retry_later'])
})

test('property: in any order of events it is settled at most once, by its exact amount in PKR', () => {
  const money = { amount: fc.constantFrom(500, 501), currency: fc.constantFrom('PKR', 'USD') }
  const event = fc.record({ outcome: fc.constantFrom('paid', 'failed'), ...money })
  const events = fc.array(event, { maxLength: 10 })
  fc.assert(
    fc.property(events, (many) => {
      let settled: string | null = null
      for (const { outcome, ...event } of many) {
        const standing = settled === null ? 'open' : settled === outcome ? 'same' : 'other'
        if (decideOutcome({ standing, amount: 500, event }) !== 'settle') continue
        assert.equal([settled, event.amount, event.currency], [null, 500, 'PKR'])
        settled = outcome
      }
    }),
    { numRuns: 500 },
  )
})

test.run()
