import { defineEntity } from '@mikro-orm/core'
import { count, id, moment, text } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'

/** A digest over all that the journal held at a moment, and over the seal before. Only ever added. */
export const LedgerSeal = defineEntity({
  name: 'LedgerSeal',
  tableName: 'ledger_seals',
  properties: {
    /** 1, 2, 3 … */
    position: count().primary().autoincrement(false),
    sealed_at: moment(),
    /** Hex SHA-256; what to keep elsewhere. */
    digest: text().unique(),
  },
})

/** Where a ledger that had moved since the seal before ended at a seal. Rows, so that the next seal finds what moved. */
export const LedgerSealHead = defineEntity({
  name: 'LedgerSealHead',
  tableName: 'ledger_seal_heads',
  properties: {
    seal: () => refersTo(LedgerSeal).primary().fieldName('position'),
    ledger_id: id().primary(),
    sequence: count(),
    hash: text(),
  },
  uniques: [{ name: 'ledger_seal_heads_head', properties: ['ledger_id', 'sequence'] }],
})
