import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PLACES, type PlaceOwner, Places } from './delivery-places.rule.ts'

const it = suite('places of deliveries')

function ownerOf(accountId: string, endpoint = 0, failing = false): PlaceOwner {
  return { accountId, endpointId: `${accountId}/${endpoint}`, failing }
}

/** Takes as many as there is room for; returns how many. */
function fill(places: Places, owner: PlaceOwner): number {
  let taken = 0
  for (; places.hasRoom(owner); taken += 1) places.take(owner, 1)
  return taken
}

it('stay free in part when an account takes all that it may', () => {
  const places = new Places()
  const taken = Array.from({ length: 10 }, (_, endpoint) => fill(places, ownerOf('greedy', endpoint)))
  assert.ok(
    taken.every((count) => count >= 1),
    'each endpoint has one',
  )
  assert.ok(taken.reduce((sum, count) => sum + count) < PLACES / 2, 'most stay free')
  assert.ok(fill(places, ownerOf('other')) >= 100)
})

it('leave one for each endpoint, whatever others hold', () => {
  const places = new Places()
  for (let n = 0; n < 3 * PLACES; n += 1) fill(places, ownerOf(`greedy ${n}`))
  assert.ok(places.hasRoom(ownerOf('other')))
  assert.not.ok(places.isFull(ownerOf('other')))
  assert.is(fill(places, ownerOf('other')), 1)
  assert.is(fill(places, ownerOf('other', 1)), 1)
  assert.ok(places.isFull(ownerOf('other')))
})

it('are one for an endpoint that fails', () => {
  assert.is(fill(new Places(), ownerOf('failing', 0, true)), 1)
})

it('are free again when they are given back', () => {
  const places = new Places()
  const owner = ownerOf('one')
  const most = fill(places, owner)
  assert.ok(places.isFull(owner))
  places.take(owner, -most)
  assert.not.ok(places.isFull(owner))
  assert.is(fill(places, owner), most)
})

it('are tried on a copy without being taken', () => {
  const places = new Places()
  const owner = ownerOf('one')
  places.take(owner, 3)
  const copy = new Places(places)
  assert.is(copy.of('one'), 3)
  copy.take(owner, 1)
  assert.equal([copy.of('one'), places.of('one')], [4, 3])
  assert.is(copy.of('unknown'), 0)
})

it.run()
