import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isFinalRefusal, SHOWN_WITHIN_MS } from './final-refusal.rule.ts'

const it = suite('a refusal')
const CALLED = Date.UTC(2026, 10, 1)

it('is final immediately if every earlier try is known to have done nothing', () => {
  assert.ok(isFinalRefusal({ unknownAt: null, at: CALLED }))
})

it('is final after a call with an unknown outcome once look-ups have had time to show it', () => {
  const later = (ms: number) => isFinalRefusal({ unknownAt: CALLED, at: CALLED + ms })
  assert.equal([1, SHOWN_WITHIN_MS - 1, SHOWN_WITHIN_MS].map(later), [false, false, true])
})

it('is not final after the clock was set back, because the time passed is unknown', () => {
  assert.not.ok(isFinalRefusal({ unknownAt: CALLED, at: CALLED - 86_400_000 }))
})

it.run()
