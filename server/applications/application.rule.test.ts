import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { offerStatus as offerStatuses } from '../../shared/schemas/offers.ts'
import {
  type ApplicationDecision,
  type ApplyDecision,
  decideApplication,
  decideWithdrawal,
  mayApply,
} from './application.rule.ts'

const codeOf = (decision: ApplicationDecision | ApplyDecision | ReturnType<typeof decideWithdrawal>) =>
  decision.kind === 'refused' ? decision.code : decision.kind
const live = {
  status: 'pending',
  offerStatus: 'live',
  vetting: 'not_required',
  individualRate: false,
} as const

test('a pending application to a live offer is approved or rejected', () => {
  assert.equal(decideApplication({ ...live, decision: 'approve' }), { kind: 'approve' })
  assert.equal(decideApplication({ ...live, decision: 'approve', vetting: 'approved' }), { kind: 'approve' })
  assert.equal(decideApplication({ ...live, decision: 'reject' }), { kind: 'reject' })
})

test('the same decision again changes nothing, the other one is refused, also when the offer has ended', () => {
  for (const offerStatus of offerStatuses.options) {
    const decide = (status: 'approved' | 'rejected', decision: 'approve' | 'reject') =>
      codeOf(decideApplication({ ...live, status, decision, offerStatus, vetting: 'pending' }))
    assert.is(decide('approved', 'approve'), 'unchanged')
    assert.is(decide('rejected', 'reject'), 'unchanged')
    assert.is(decide('approved', 'reject'), 'already_decided')
    assert.is(decide('rejected', 'approve'), 'already_decided')
  }
})

test('the same decision with another reason, coupon code or rate is refused', () => {
  for (const differsIn of ['reason', 'coupon code', 'commission rate'] as const) {
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

test('an individual rate that needs vetting is refused in its own words', () => {
  const refused = decideApplication({
    ...live,
    decision: 'approve',
    vetting: 'pending',
    individualRate: true,
  })
  assert.is(codeOf(refused), 'vetting_required')
  assert.match(refused.kind === 'refused' ? refused.detail : '', /^An individual rate/)
  assert.is(codeOf(decideApplication({ ...live, decision: 'approve', individualRate: true })), 'approve')
})

test('only a pending application is withdrawn, once; then nothing is decided about it', () => {
  assert.is(codeOf(decideWithdrawal('pending')), 'withdraw')
  assert.is(codeOf(decideWithdrawal('withdrawn')), 'unchanged')
  for (const status of ['approved', 'rejected'] as const)
    assert.is(codeOf(decideWithdrawal(status)), 'already_decided')
  for (const decision of ['approve', 'reject'] as const)
    assert.is(codeOf(decideApplication({ ...live, status: 'withdrawn', decision })), 'already_decided')
})

test('one may apply to a live offer of an active merchant, and again after rejections and withdrawals', () => {
  const fresh = { offerStatus: 'live', merchantSuspended: false } as const
  assert.equal(mayApply({ ...fresh, existing: [] }), { kind: 'allowed' })
  assert.equal(mayApply({ ...fresh, existing: ['rejected', 'withdrawn'] }), { kind: 'allowed' })
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
