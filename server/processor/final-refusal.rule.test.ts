import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isFinalRefusal, SHOWN_WITHIN_MS } from './final-refusal.rule.ts'

const it = suite('a refusal')
const CALLED = Date.UTC(2026, 10, 1)

it('counts at once where every earlier try is known to have done nothing', () => {
  assert.ok(isFinalRefusal({ unknownAt: null, at: CALLED }))
})

it('counts after a call of unknown outcome when look-ups have had the time to show it', () => {
  const later = (ms: number) => isFinalRefusal({ unknownAt: CALLED, at: CALLED + ms })
  assert.equal([1, SHOWN_WITHIN_MS - 1, SHOWN_WITHIN_MS].map(later), [false, false, true])
})

it('does not count when the clock was put back since: how much time has passed nobody knows', () => {
  assert.not.ok(isFinalRefusal({ unknownAt: CALLED, at: CALLED - 86_400_000 }))
})

it.run()
