import { defineEntity } from '@mikro-orm/core'
import { enumText, epochMs, id, oneOf, paisa, rowDigest, text } from '../../platform/database/columns.ts'
import type { AttemptKind } from '../attempt.entity.ts'
import { TRANSFER_STATES, type TransferState } from './confirmation.rule.ts'

/** What the manual processor holds: an invoice or payout that a person confirms by hand. */
export const ManualTransfer = defineEntity({
  name: 'ManualTransfer',
  tableName: 'manual_transfers',
  properties: {
    /** The attempt, so that a repeated call makes one. */
    id: id().primary(),
    kind: enumText<AttemptKind>(),
    /** The billing cycle or the payout. */
    subject_id: id(),
    /** What the payer or the bank names: `INV` or `PAY` and twelve letters and digits. */
    number: text(),
    amount: paisa(),
    state: enumText<TransferState>(),
    /** The payout file that it was exported to; `null` before. */
    file: text().strictNullable(),
    exported_at: epochMs().strictNullable(),
    /** The bank's reference of the payment. */
    bank_reference: text().strictNullable(),
    /** Why it failed. */
    reason: text().strictNullable(),
    /** The admin who confirmed its outcome. */
    confirmed_by: id().strictNullable(),
    created_at: epochMs(),
    settled_at: epochMs().strictNullable(),
    row_digest: rowDigest(),
  },
  checks: [
    oneOf('manual_transfers', 'kind', ['invoice', 'payout']),
    oneOf('manual_transfers', 'state', TRANSFER_STATES),
    { name: 'manual_transfers_amount_check', expression: 'amount > 0' },
  ],
  uniques: [
    { name: 'manual_transfers_subject', properties: ['subject_id'] },
    { name: 'manual_transfers_number', properties: ['number'] },
    { name: 'manual_transfers_reference', properties: ['bank_reference'] },
  ],
  indexes: [
    { name: 'manual_transfers_open', properties: ['kind', 'id'], where: "state = 'open'" },
    { name: 'manual_transfers_settled', properties: ['settled_at'], where: 'settled_at is not null' },
    { name: 'manual_transfers_file', properties: ['file'], where: 'file is not null' },
  ],
})
