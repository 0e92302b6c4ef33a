// database: none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { assertMapped } from '../test/testkit/pluck.ts'
import { refusalSteps, type SourceCounts, sourceShift, storeStatus } from './store-status.rule.ts'

const DAY = 86_400_000
const NOW = 20_000 * DAY
const SETTINGS = { FLAG_STORE_SILENT_DAYS: 7, FLAG_STORE_SILENT_REGULAR: 14 }

const it = suite('the status of a store')

const status = (signs: Partial<Parameters<typeof storeStatus>[0]>, settings = SETTINGS) =>
  storeStatus(
    {
      ...{ connectedAt: NOW - 90 * DAY, lastEventAt: null, lastRefusedAt: null, orderDays: 0 },
      ...{ onlyOtherTopics: false, lastXmlAt: null },
      ...signs,
    },
    NOW,
    settings,
  )

it('follows from what arrived last', () => {
  assert.is(status({}), 'waiting')
  assert.is(status({ lastEventAt: NOW }), 'receiving')
  assert.is(status({ lastRefusedAt: NOW }), 'rejecting')
  assert.is(status({ lastEventAt: NOW - 2, lastRefusedAt: NOW - 1 }), 'rejecting')
  assert.is(status({ lastEventAt: NOW - 1, lastRefusedAt: NOW - 2 }), 'receiving')
})

it('says that the webhook is for another event or format, while that is so', () => {
  assert.is(status({ lastEventAt: NOW, onlyOtherTopics: true }), 'no_order_payment')
  assert.is(status({ lastEventAt: NOW, lastXmlAt: NOW }), 'xml')
  assert.is(status({ lastEventAt: NOW, lastXmlAt: NOW - 1 }), 'receiving')
  assert.is(status({ lastEventAt: null, onlyOtherTopics: true }), 'waiting')
  assert.is(status({ lastEventAt: NOW - 1, lastRefusedAt: NOW, onlyOtherTopics: true }), 'rejecting')
})

it('starts again when a store is connected again', () => {
  assert.is(status({ connectedAt: NOW - 1, lastEventAt: NOW - 2 }), 'waiting')
  assert.is(status({ connectedAt: NOW - 1, lastRefusedAt: NOW - 2 }), 'waiting')
})

it('is silent only after regular orders', () => {
  const lastEventAt = NOW - 7 * DAY
  assert.is(status({ lastEventAt, orderDays: 14 }), 'silent')
  assert.is(status({ lastEventAt, orderDays: 13 }), 'receiving')
  assert.is(status({ lastEventAt: lastEventAt + 1, orderDays: 28 }), 'receiving')
  const off = { ...SETTINGS, FLAG_STORE_SILENT_REGULAR: 0 }
  assert.is(status({ lastEventAt, orderDays: 28 }, off), 'receiving')
})

const MINUTE = 60_000
const steps = (refusals: Partial<Parameters<typeof refusalSteps>[0]>) =>
  refusalSteps(
    { since: NOW - 2, count: 2, lastRefusedAt: NOW - 1, lastEventAt: null, sentAt: null, ...refusals },
    NOW,
  )

for (const [what, refusals, expected] of [
  ['two refusals', {}, []],
  ['three in a row', { count: 3 }, ['notify']],
  ['one ten minutes ago', { since: NOW - 10 * MINUTE, count: 1 }, ['notify']],
  ['one less than ten minutes ago', { since: NOW - 10 * MINUTE + 1, count: 1 }, []],
  ['a valid delivery after them', { count: 9, since: NOW - DAY, lastEventAt: NOW }, ['answered']],
  ['a valid delivery among them', { count: 9, since: NOW - DAY, lastEventAt: NOW - 5 }, []],
  ['refusals for a day', { since: NOW - DAY, sentAt: NOW - DAY }, ['notify', 'flag']],
  ['a notice of this day', { count: 9, sentAt: NOW - DAY + 1 }, []],
  ['no refusal since the notice', { count: 9, lastRefusedAt: NOW - 2 * DAY, sentAt: NOW - 2 * DAY }, []],
] as [string, Parameters<typeof steps>[0], string[]][]) {
  it(`calls for ${expected.join(' and ') || 'nothing'} after ${what}`, () => {
    const called = Object.entries(steps(refusals)).filter(([, due]) => due)
    assertMapped(called, ([step]) => step, expected)
  })
}

it('sees a shift among all orders or among those that led to a link, if both weeks have enough', () => {
  const orders = (counts: Partial<SourceCounts>) => ({
    cart: 0,
    landing: 0,
    line: 0,
    coupon: 0,
    none: 0,
    ...counts,
  })
  for (const [before, after, least, shift] of [
    [{ cart: 20 }, { cart: 30 }, 20, 0],
    [{ cart: 20 }, { landing: 20 }, 20, 1],
    [{ cart: 19 }, { landing: 20 }, 20, 0],
    [{ cart: 20 }, { cart: 5, none: 15 }, 20, 0.75],
    [{ cart: 20, none: 980 }, { landing: 15, cart: 5, none: 980 }, 20, 0.75],
    [{}, {}, 0, 0],
  ] as const)
    assert.is(sourceShift(orders(before), orders(after), least), shift, JSON.stringify([before, after]))
})

it.run()
