import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { offerStatus as offerStatuses } from '../../shared/schemas/offers.ts'
import {
  type ApplicationDecision,
  type ApplyDecision,
  decideApplication,
  mayApply,
} from './application.rule.ts'

const codeOf = (decision: ApplicationDecision | ApplyDecision) =>
  decision.kind === 'refused' ? decision.code : decision.kind
const live = { status: 'pending', offerStatus: 'live', vetting: 'not_required' } as const

test('a pending application to a live offer is approved or rejected', () => {
  assert.equal(decideApplication({ ...live, decision: 'approve' }), { kind: 'approve' })
  assert.equal(decideApplication({ ...live, decision: 'approve', vetting: 'approved' }), { kind: 'approve' })
  assert.equal(decideApplication({ ...live, decision: 'reject' }), { kind: 'reject' })
})

test('the same decision again changes nothing, the other one is refused, also when the offer has ended', () => {
  for (const offerStatus of offerStatuses.options) {
    const decide = (status: 'approved' | 'rejected', decision: 'approve' | 'reject') =>
      codeOf(decideApplication({ status, decision, offerStatus, vetting: 'pending' }))
    assert.is(decide('approved', 'approve'), 'unchanged')
    assert.is(decide('rejected', 'reject'), 'unchanged')
    assert.is(decide('approved', 'reject'), 'already_decided')
    assert.is(decide('rejected', 'approve'), 'already_decided')
  }
})

test('the same decision with another reason or coupon code is refused', () => {
  for (const differsIn of ['reason', 'coupon code'] as const) {
    const decision = decideApplication({ ...live, status: 'approved', decision: 'approve', differsIn })
    const detail = `This application is already approved, with another ${differsIn}.`
    assert.equal(decision, { kind: 'refused', code: 'already_decided', detail })
  }
})

test('approval needs a live offer before it needs vetting; rejecting asks nothing of the offer', () => {
  const decide = (facts: Partial<Parameters<typeof decideApplication>[0]>) =>
    codeOf(decideApplication({ ...live, decision: 'approve', ...facts }))
  for (const offerStatus of ['draft', 'paused', 'ended'] as const)
    assert.is(decide({ offerStatus, vetting: 'pending' }), 'offer_not_live')
  for (const vetting of ['pending', 'rejected'] as const) assert.is(decide({ vetting }), 'vetting_required')
  assert.is(decide({ decision: 'reject', offerStatus: 'ended', vetting: 'rejected' }), 'reject')
})

test('one may apply to a live offer of an active merchant, and again after rejections', () => {
  const fresh = { offerStatus: 'live', merchantSuspended: false } as const
  assert.equal(mayApply({ ...fresh, existing: [] }), { kind: 'allowed' })
  assert.equal(mayApply({ ...fresh, existing: ['rejected', 'rejected'] }), { kind: 'allowed' })
  assert.is(codeOf(mayApply({ ...fresh, existing: ['pending'] })), 'already_applied')
  assert.is(codeOf(mayApply({ ...fresh, existing: ['rejected', 'approved'] })), 'already_applied')
})

test('a paused or ended offer takes no applications, and an offer that creators cannot see does not exist', () => {
  for (const offerStatus of ['paused', 'ended'] as const) {
    const refused = mayApply({ offerStatus, merchantSuspended: false, existing: ['pending'] })
    assert.is(codeOf(refused), 'offer_not_live')
  }
  assert.is(mayApply({ offerStatus: 'draft', merchantSuspended: false, existing: [] }).kind, 'invisible')
  for (const offerStatus of offerStatuses.options) {
    assert.is(mayApply({ offerStatus, merchantSuspended: true, existing: ['pending'] }).kind, 'invisible')
  }
})

test.run()
