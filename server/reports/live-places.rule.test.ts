// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { admitStream, type StreamDecision, type StreamFacts } from './live-places.rule.ts'

const LIMITS = { all: 10, perUser: 3 }
const NONE: StreamFacts = { isActive: false, own: 0, inactive: 0, open: 0 }

const CASES: [what: string, facts: Partial<StreamFacts>, decision: StreamDecision][] = [
  ['the first stream', {}, 'admitted'],
  ['the last stream of one account', { own: 2, inactive: 2, open: 2 }, 'admitted'],
  ['one too many of one account', { own: 3, inactive: 3, open: 3 }, 'own_limit'],
  ['one too many of an active account', { isActive: true, own: 3, open: 3 }, 'own_limit'],
  ['the last place of accounts without activity', { inactive: 4, open: 4 }, 'admitted'],
  ['one too many of accounts without activity', { inactive: 5, open: 5 }, 'full'],
  ['an active account while those have their half', { isActive: true, inactive: 5, open: 5 }, 'admitted'],
  ['an active account at the last place', { isActive: true, inactive: 5, open: 9 }, 'admitted'],
  ['an active account without a free place', { isActive: true, inactive: 5, open: 10 }, 'full'],
  ['an account without activity beside active ones', { inactive: 1, open: 9 }, 'admitted'],
  ['an account without activity without a free place', { inactive: 0, open: 10 }, 'full'],
]

for (const [what, facts, decision] of CASES) {
  test(`${what}: ${decision}`, () => assert.is(admitStream({ ...NONE, ...facts }, LIMITS), decision))
}

test('a single place is open to all, and no place to no one', () => {
  assert.is(admitStream(NONE, { all: 1, perUser: 1 }), 'admitted')
  assert.is(admitStream({ ...NONE, isActive: true }, { all: 0, perUser: 1 }), 'full')
})

test.run()
