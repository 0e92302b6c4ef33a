import { defineEntity } from '@mikro-orm/core'
import { count, enumText, epochMs, id, oneOf, paisa, refersTo, text } from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'
import { ACCOUNTS, type Account, ENTRY_KINDS, type EntryKind } from './entries.rule.ts'

/** One business event in the journal. Written once per (kind, subject); a trigger refuses update and delete. */
export const LedgerEntry = defineEntity({
  name: 'LedgerEntry',
  tableName: 'ledger_entries',
  properties: {
    id: id().primary(),
    kind: enumText<EntryKind>(),
    /** The sale, credit, billing cycle or payout that it is about. */
    subject_id: id(),
    created_at: epochMs(),
    /** The merchant or creator whose ledger it stands in, and 1, 2, 3 … there. */
    ledger_id: id(),
    sequence: count(),
    /** Over the hash before it in its ledger and all that it says: `KEYID.HMAC`. */
    hash: text(),
  },
  checks: [oneOf('ledger_entries', 'kind', ENTRY_KINDS)],
  uniques: [
    { name: 'ledger_entries_subject', properties: ['subject_id', 'kind'] },
    { name: 'ledger_entries_place', properties: ['ledger_id', 'sequence'] },
  ],
})

/** Where each ledger's chain of entries ends: what the next entry follows on. Only moves forward. */
export const LedgerHead = defineEntity({
  name: 'LedgerHead',
  tableName: 'ledger_heads',
  properties: {
    ledger_id: () => refersTo(User, 'ledger_id').primary(),
    /** 0 while nothing is written. */
    sequence: count(),
    hash: text(),
    /** `KEYID.HMAC` of the row; null only while nothing is written, or before the cut-over to keys. */
    mac: text().strictNullable(),
  },
})

/** One leg of an entry: debit above zero, credit below. The legs of an entry sum to zero. */
export const LedgerPosting = defineEntity({
  name: 'LedgerPosting',
  tableName: 'ledger_postings',
  properties: {
    entry_id: () => refersTo(LedgerEntry, 'entry_id').primary(),
    line: count().primary(),
    account: enumText<Account>(),
    /** The merchant or creator whose account it is; the nil UUID for the platform's own. */
    owner_id: id(),
    amount: paisa(),
  },
  checks: [
    oneOf('ledger_postings', 'account', ACCOUNTS),
    { name: 'ledger_postings_amount_check', expression: 'amount <> 0' },
  ],
  indexes: [{ name: 'ledger_postings_account', properties: ['owner_id', 'account', 'amount'] }],
})
