import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { offerStatus, vettingState } from '../../shared/schemas/offers.ts'
import { decideOfferMove, type OfferMove } from './offer-status.rule.ts'

const OFFER_STATUSES = offerStatus.options
const VETTING_STATES = vettingState.options
const ready = { merchantHasStore: true, vetting: 'not_required' } as const
const codeOf = (move: OfferMove) => (move.kind === 'refused' ? move.code : move.kind)

test('exactly the five moves are possible, and the same status again changes nothing', () => {
  const table = OFFER_STATUSES.map((from) =>
    OFFER_STATUSES.map((to) => codeOf(decideOfferMove({ from, to, ...ready }))),
  )
  const no = 'illegal_transition'
  assert.equal(table, [
    ['unchanged', 'moved', no, no],
    [no, 'unchanged', 'moved', 'moved'],
    [no, 'moved', 'unchanged', 'moved'],
    [no, no, no, 'unchanged'],
  ])
})

test('a refused move says what would be possible', () => {
  const refused = decideOfferMove({ from: 'draft', to: 'ended', ...ready })
  assert.is(refused.kind === 'refused' && /can become live/.test(refused.detail), true)
  const final = decideOfferMove({ from: 'ended', to: 'live', ...ready })
  assert.is(final.kind === 'refused' && /cannot change/.test(final.detail), true)
})

test('going live needs a store, and vetting where the rate needs it, from draft and from paused', () => {
  for (const from of ['draft', 'paused'] as const) {
    const go = (vetting: (typeof VETTING_STATES)[number], merchantHasStore = true) =>
      codeOf(decideOfferMove({ from, to: 'live', merchantHasStore, vetting }))
    assert.is(go('not_required', false), 'conflict')
    assert.equal(
      VETTING_STATES.map((vetting) => go(vetting)),
      ['moved', 'vetting_required', 'moved', 'vetting_required'],
    )
  }
})

test('pausing, ending and staying live ask for nothing', () => {
  for (const to of ['paused', 'ended', 'live'] as const) {
    const move = decideOfferMove({ from: 'live', to, merchantHasStore: false, vetting: 'rejected' })
    assert.is(move.kind, to === 'live' ? 'unchanged' : 'moved')
  }
})

test.run()
