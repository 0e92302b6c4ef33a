import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { LookupItem } from './processor.ts'
import {
  compareRecords,
  hasFailed,
  type OurRecord,
  type RecordStatus,
  recordStatus,
  type Standing,
} from './records.rule.ts'

const item = (status: string, changes: Partial<LookupItem> = {}): LookupItem => ({
  ...{ id: 'po_1', reference: 'ours', amount: 500_000, currency: 'PKR', status },
  ...changes,
})

const ours = (standing: Standing, changes: Partial<OurRecord> = {}): OurRecord => ({
  kind: 'payout',
  id: 'ours',
  standing,
  amount: 500_000,
  processorId: standing === 'unsent' || standing === 'refused' ? null : 'po_1',
  ...changes,
})

const THERE = ['nothing', 'processing', 'paid', 'failed', 'odd']
const TABLE: Record<Standing, string[]> = {
  unsent: ['', '', 'paid_there', '', 'unclear_there'],
  refused: ['', 'open_there', 'paid_there', '', 'unclear_there'],
  open: ['unknown_there', '', 'paid_there', 'failed_there', 'unclear_there'],
  paid: ['unknown_there', 'open_there', '', 'failed_there', 'unclear_there'],
  failed: ['', 'open_there', 'paid_there', '', 'unclear_there'],
}

for (const [standing, row] of Object.entries(TABLE)) {
  for (const [index, status] of THERE.entries()) {
    const expected = row[index]
    test(`${standing} with us, ${status} there: ${expected || 'agreed'}`, () => {
      const items = status === 'nothing' ? [] : [item(status)]
      assert.is(compareRecords(ours(standing as Standing), items).join(), expected)
    })
  }
}

test('every amount, currency and id must be ours', () => {
  const found = [item('paid', { id: 'po_2', amount: 1, currency: 'USD' })]
  assert.equal(compareRecords(ours('paid'), found), ['other_id_there', 'amount_differs', 'currency_differs'])
  assert.equal(compareRecords(ours('unsent'), [item('open', { id: 'any' })]), [])
})

test('two records that have not failed are duplicates; one beside failed ones counts', () => {
  const twice = [item('paid', { id: 'po_0' }), item('paid')]
  assert.equal(compareRecords(ours('paid'), twice), ['double_there'])
  const retried = [item('Failed', { id: 'po_0' }), item('paid')]
  assert.equal(compareRecords(ours('paid'), retried), [])
  assert.equal(compareRecords(ours('failed'), retried), ['paid_there'])
  const bothFailed = [item('failed', { id: 'po_0' }), item('failed'), item('failed', { id: 'po_2' })]
  assert.equal(compareRecords(ours('failed'), bothFailed), [])
  assert.equal(compareRecords(ours('failed', { processorId: 'po_9' }), bothFailed), ['other_id_there'])
})

const STATUSES: Record<RecordStatus, string[]> = {
  open: ['open', 'processing', 'Pending'],
  paid: ['paid', 'SETTLED'],
  failed: ['failed', 'rejected', 'cancelled', 'canceled', 'void', 'Void', 'expired', 'returned', 'reversed'],
  unclear: ['', 'on_hold', 'failed?', 'constructor'],
}

for (const [word, statuses] of Object.entries(STATUSES)) {
  test(`${statuses.join(', ')}: ${word}`, () => {
    for (const status of statuses) {
      assert.is(recordStatus({ status }), word, status)
      assert.is(hasFailed({ status }), word === 'failed', status)
    }
  })
}

test.run()
