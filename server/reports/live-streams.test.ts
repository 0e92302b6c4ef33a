// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Refusal } from '../platform/api/refusal.ts'
import { LiveStreams } from './live-streams.ts'

const LIMITS = { all: 10, perUser: 3 }

/** What a stream of `account` is answered: a code, or `null` for a place. */
function answer(streams: LiveStreams, account: string, isActive: boolean): string | null {
  try {
    streams.enter(account, isActive)
    return null
  } catch (error) {
    if (error instanceof Refusal) return error.code
    throw error
  }
}

/** Streams that are open: of the asking account, of others without activity, of other active ones. */
const CASES: [
  what: string,
  open: [own: number, inactive: number, active: number],
  isActive: boolean,
  answer: string | null,
][] = [
  ['the first stream', [0, 0, 0], false, null],
  ['the last stream of one account', [2, 0, 0], false, null],
  ['one too many of one account', [3, 0, 0], false, 'rate_limited'],
  ['one too many of an active account', [3, 0, 0], true, 'rate_limited'],
  ['the last place of accounts without activity', [0, 4, 0], false, null],
  ['one too many of accounts without activity', [0, 5, 0], false, 'unavailable'],
  ['an active account while those have their half', [0, 5, 0], true, null],
  ['an active account at the last place', [0, 5, 4], true, null],
  ['an active account without a free place', [0, 5, 5], true, 'unavailable'],
  ['an account without activity beside active ones', [0, 1, 8], false, null],
  ['an account without activity without a free place', [0, 0, 10], false, 'unavailable'],
]

for (const [what, [own, inactive, active], isActive, expected] of CASES) {
  test(`${what}: ${expected ?? 'admitted'}`, () => {
    const streams = new LiveStreams(LIMITS)
    const open = (accounts: number, name: string, active: boolean) => {
      for (let n = 0; n < accounts; n += 1) assert.is(answer(streams, `${name} ${n}`, active), null)
    }
    for (let n = 0; n < own; n += 1) assert.is(answer(streams, 'own', isActive), null)
    open(inactive, 'inactive', false)
    open(active, 'active', true)
    assert.is(answer(streams, 'own', isActive), expected)
  })
}

test('a single place is open to all, and no place to no one', () => {
  assert.is(answer(new LiveStreams({ all: 1, perUser: 1 }), 'own', false), null)
  assert.is(answer(new LiveStreams({ all: 0, perUser: 1 }), 'own', true), 'unavailable')
})

test('a stream that ends leaves its place, and the last one ends the wait', async () => {
  const streams = new LiveStreams({ all: 2, perUser: 1 })
  const leave = streams.enter('own', false)
  assert.equal([answer(streams, 'own', false), streams.count], ['rate_limited', 1])
  const idle = streams.idle()
  leave()
  await idle
  assert.equal([answer(streams, 'own', false), streams.count], [null, 1])
})

test.run()
