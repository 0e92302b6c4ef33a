import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type ConfirmationFacts,
  decideConfirmation,
  eventOf,
  readReference,
  type TransferFacts,
} from './confirmation.rule.ts'

const OPEN: TransferFacts = {
  ...{ kind: 'payout', subject_id: 'p-1', number: 'PAYABCDEFGHIJKL', amount: 125_050, state: 'open' },
  ...{ bank_reference: null, reason: null },
}
const PAID: TransferFacts = { ...OPEN, state: 'paid', bank_reference: 'FT1' }
const FAILED: TransferFacts = { ...OPEN, state: 'failed', reason: 'account closed' }
const paid: ConfirmationFacts = { outcome: 'paid', amount: 125_050, reference: 'FT1', reason: null }
const failed: ConfirmationFacts = {
  ...{ outcome: 'failed', amount: null, reference: null, reason: 'account closed' },
}

const decisions = suite('what is done with a confirmation')
decisions('by what is known of the transfer and of the reference', () => {
  const table: [TransferFacts | null, string | null, ConfirmationFacts, string][] = [
    [OPEN, null, paid, 'record'],
    [OPEN, null, { ...paid, amount: null }, 'record'],
    [OPEN, null, failed, 'record'],
    [null, null, paid, 'unknown'],
    [OPEN, null, { ...paid, amount: 125_000 }, 'other_amount'],
    [PAID, 'PAYABCDEFGHIJKL', { ...paid, amount: 1 }, 'other_amount'],
    [OPEN, 'PAYOTHER', paid, 'used_reference'],
    [PAID, 'PAYABCDEFGHIJKL', paid, 'repeat'],
    [PAID, null, { ...paid, reference: 'FT2' }, 'settled'],
    [PAID, null, failed, 'settled'],
    [FAILED, null, failed, 'repeat'],
    [FAILED, null, { ...failed, reason: 'another' }, 'settled'],
    [FAILED, null, paid, 'settled'],
  ]
  for (const [transfer, holder, said, verdict] of table)
    assert.is(decideConfirmation(transfer, holder, said), verdict, JSON.stringify([transfer, holder, said]))
})
decisions.run()

const events = suite('the event of a settled transfer')
events('has the form of the generic contract, the same each time', () => {
  const read = (transfer: TransferFacts) => {
    const { type, data } = JSON.parse(eventOf(transfer))
    return [type, data]
  }
  const money = { amount: '1250.50', currency: 'PKR' }
  const payout = { payout_id: 'PAYABCDEFGHIJKL', reference: 'p-1', ...money }
  const invoice = { invoice_id: 'INVABCDEFGHIJKL', payment_reference: 'FT1', ...money }
  const paidInvoice = { ...PAID, kind: 'invoice' as const, number: 'INVABCDEFGHIJKL' }
  assert.equal(read(paidInvoice), ['billing.payment_confirmed', invoice])
  assert.equal(read(PAID), ['payout.confirmed', payout])
  assert.equal(read(FAILED), ['payout.failed', { ...payout, reason: 'account closed' }])
  assert.is(eventOf(PAID), eventOf({ ...PAID }))
})
events.run()

const references = suite("a bank's reference")
references('is compared without case, spaces around, invisible marks and by plain digits', () => {
  const marked = ['\u200eFT 26331/ABC', "'FT 26331/ABC"]
  for (const pasted of ['ft 26331/abc', ' FT  26331/ABC ', 'ft ۲۶۳۳۱/abc', ...marked])
    assert.is(readReference(pasted), 'FT 26331/ABC', pasted)
})
references('is refused when it is none, too long, or was rounded by a spreadsheet program', () => {
  const rounded = ['1.23457E+15', '1E15', '=1+1']
  for (const pasted of ['', ' ', '-', 'ft\u0000', 'حوالہ', 'x'.repeat(65), '\ufffd', ...rounded])
    assert.is(readReference(pasted), null, pasted)
  assert.is(readReference('1E15X'), '1E15X')
})
references.run()
