import { defineEntity } from '@mikro-orm/core'
import { count, epochMs, id, refersTo, rowDigest, text } from '../../platform/database/columns.ts'

/** A digest over all that the journal held at a moment, and over the seal before. Only ever added. */
export const LedgerSeal = defineEntity({
  name: 'LedgerSeal',
  tableName: 'ledger_seals',
  properties: {
    /** 1, 2, 3 … */
    position: count().primary().autoincrement(false),
    sealed_at: epochMs(),
    /** `KEYID.HMAC`; what to keep elsewhere. */
    digest: text().unique(),
    /** What no entry after this seal may be made with: a key's id. Such a seal holds the heads of all ledgers. */
    retires: text().unique().strictNullable(),
    row_digest: rowDigest(),
  },
})

/**
 * Where a ledger ended at a seal: each that had moved since the seal before, or all of them when the seal retires a key. Rows, so
 * that the next seal finds what moved.
 */
export const LedgerSealHead = defineEntity({
  name: 'LedgerSealHead',
  tableName: 'ledger_seal_heads',
  properties: {
    position: () => refersTo(LedgerSeal, 'position').primary(),
    ledger_id: id().primary(),
    sequence: count(),
    hash: text(),
  },
  indexes: [{ name: 'ledger_seal_heads_head', properties: ['ledger_id', 'sequence'] }],
})
