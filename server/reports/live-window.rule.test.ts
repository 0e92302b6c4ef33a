// database: none

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { firstIdAt, isId, timeOfId } from '../platform/ids.ts'
import { fc } from '../test/testkit/property.ts'
import {
  cursorOf,
  isNew,
  LATE_MS,
  type LiveWindow,
  MOST_REMEMBERED,
  positionAt,
  startAt,
  windowOf,
  withPassed,
  withSent,
} from './live-window.rule.ts'

const T = Date.parse('2026-11-01T07:00:00.000Z')
const SUBJECT = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'

test('a position is shaped like an id, begins with its moment, and is another one for each step', () => {
  const positions = [0, 1, 2, 3].map((step) => positionAt(T, step, SUBJECT))
  assert.ok(positions.every(isId))
  assert.ok(positions.every((position) => timeOfId(position) === T))
  assert.equal([...positions].sort(), positions)
  assert.is(new Set(positions.map((position) => position.slice(-12))).size, 4)
  assert.ok(positionAt(T, 15, SUBJECT) < positionAt(T + 1, 0, SUBJECT))
})

test('an event id reads as what was written, and nothing else reads as one', () => {
  const bound = firstIdAt(T)
  const window = withSent(startAt(bound), positionAt(T + 5, 0, SUBJECT), bound)
  assert.is(cursorOf(startAt(bound)), bound)
  assert.equal(cursorOf(windowOf(cursorOf(window)) as LiveWindow), cursorOf(window))
  for (const wrong of [
    '',
    'yesterday',
    `${bound}.`,
    `${bound}.abc`,
    `${bound}.${'A'.repeat(12)}`,
    `${bound}\n`,
  ]) {
    assert.is(windowOf(wrong), null, wrong)
  }
  assert.is(windowOf(`${bound}.${'0'.repeat(12 * (MOST_REMEMBERED + 1))}`), null)
})

test('a change that is done with changes nothing when it is met again', () => {
  const window = startAt(firstIdAt(T + 1000))
  const early = positionAt(T, 0, SUBJECT)
  assert.not.ok(isNew(window, early))
  assert.is(withSent(window, early, firstIdAt(T)), window)
})

test('an event id stays short however much happens at once', () => {
  const bound = firstIdAt(T - LATE_MS)
  let window = startAt(bound)
  for (let number = 0; number < 1000; number += 1) {
    const position = positionAt(
      T + number,
      0,
      `${SUBJECT.slice(0, -4)}${number.toString(16).padStart(4, '0')}`,
    )
    assert.ok(isNew(window, position))
    window = withSent(window, position, bound)
    assert.not.ok(isNew(window, position))
  }
  assert.is(window.sent.size, MOST_REMEMBERED)
  assert.ok(cursorOf(window).length < 2000)
})

/** Each change has a moment and shows up some time later; the stream looks now and then, and reconnects anywhere. */
const history = fc.record({
  changes: fc.array(fc.record({ moment: fc.nat(600_000), late: fc.nat(LATE_MS - 1), step: fc.nat(3) }), {
    maxLength: 60,
  }),
  looks: fc.array(fc.record({ after: fc.nat(60_000), breaksAfter: fc.option(fc.nat(5)) }), {
    minLength: 1,
    maxLength: 40,
  }),
})

test('property: each change is sent once, however late it shows up and wherever the stream breaks', () => {
  fc.assert(
    fc.property(history, ({ changes, looks }) => {
      const all = changes.map(({ moment, late, step }, index) => ({
        position: positionAt(
          T + moment,
          step,
          `${SUBJECT.slice(0, -3)}${(index * 16).toString(16).padStart(3, '0')}`,
        ),
        shows: T + moment + late,
      }))
      const sent: string[] = []
      let window = startAt(firstIdAt(T - LATE_MS))
      let now = T
      const look = (breaksAfter: number | null) => {
        const bound = firstIdAt(now - LATE_MS)
        const visible = all
          .filter(({ position, shows }) => shows <= now && position > window.settled)
          .map(({ position }) => position)
          .sort()
        let tellings = 0
        for (const position of visible) {
          const fresh = isNew(window, position)
          window = withSent(window, position, bound)
          if (!fresh) continue
          sent.push(position)
          tellings += 1
          if (breaksAfter !== null && tellings > breaksAfter) {
            window = windowOf(cursorOf(window)) as LiveWindow
            return
          }
        }
        window = withPassed(window, bound)
      }
      for (const { after, breaksAfter } of looks) {
        now += after
        look(breaksAfter)
      }
      now = T + 10_000_000
      look(null)
      assert.equal([...sent].sort(), all.map(({ position }) => position).sort())
    }),
    { numRuns: 1000 },
  )
})

test.run()
