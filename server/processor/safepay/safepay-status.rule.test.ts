// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { outcomeOfStatus, statusMeaning } from './safepay-status.rule.ts'

const TABLE: [status: string, invoice: string, payout: string][] = [
  ['P_INITIATED', 'created open', 'created open'],
  ['P_RECEIVED', 'created open', 'created open'],
  ['P_AUTHORIZED', 'created open', 'created open'],
  ['P_CAPTURED', 'created paid', 'created open'],
  ['P_SETTLED', 'created paid', 'created paid'],
  ['P_FAILED', 'refused failed', 'refused failed'],
  ['P_REJECTED', 'refused failed', 'refused failed'],
  ['P_CANCELLED', 'refused failed', 'refused failed'],
  ['P_REVERSED', 'unknown unclear', 'unknown unclear'],
  ['P_REFUNDED', 'unknown unclear', 'unknown unclear'],
  ['P_PARTIALLY_REFUNDED', 'unknown unclear', 'unknown unclear'],
  ['P_EXPIRED', 'unknown unclear', 'unknown unclear'],
  ['p_rejected', 'unknown unclear', 'unknown unclear'],
  ['constructor', 'unknown unclear', 'unknown unclear'],
  ['', 'unknown unclear', 'unknown unclear'],
]

for (const [status, invoice, payout] of TABLE) {
  test(`${status}: a request is ${invoice}, a payout ${payout}`, () => {
    const words = (kind: 'invoice' | 'payout') =>
      `${outcomeOfStatus(kind, status)} ${statusMeaning(kind, status)}`
    assert.equal([words('invoice'), words('payout')], [invoice, payout])
  })
}

test.run()
