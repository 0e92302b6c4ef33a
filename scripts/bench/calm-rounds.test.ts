import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { calmRounds } from './calm-rounds.ts'

const test = suite('rounds that the host leaves alone')

/** Rounds during which the host takes these shares, one after the other; each is called by its place. */
function hostThatTakes(...shares: number[]) {
  let next = 0
  return { round: async (place: number) => place, watch: () => () => shares[next++] ?? 0 }
}

test('all count where the host takes next to nothing', async () => {
  const { round, watch } = hostThatTakes(0, 0.03, 0.01)
  const { rounds, calm } = await calmRounds(3, round, watch)
  assert.equal(rounds, [0, 1, 2])
  assert.equal(calm, { stolen: [0, 0.03, 0.01], repeated: 0 })
})

test('one during which it takes more is done again, and counts for nothing', async () => {
  const { round, watch } = hostThatTakes(0.01, 0.2, 0.02, 0.031, 0)
  const { rounds, calm } = await calmRounds(3, round, watch)
  assert.equal(rounds, [0, 2, 4])
  assert.equal(calm, { stolen: [0.01, 0.02, 0], repeated: 2 })
})

test('where it never gets calm the calmest count, after four tries for each, in their order', async () => {
  const { round, watch } = hostThatTakes(0.5, 0.4, 0.3, 0.2, 0.1, 0.6, 0.05, 0.7)
  const { rounds, calm } = await calmRounds(2, round, watch)
  assert.equal(rounds, [4, 6])
  assert.equal(calm, { stolen: [0.1, 0.05], repeated: 6 })
})

test('what the system tells of itself is a share', async () => {
  const { calm } = await calmRounds(1, async () => {})
  const [stolen = Number.NaN] = calm.stolen
  assert.ok(stolen >= 0 && stolen <= 1, `${stolen}`)
})

test.run()
