import type { AppKeys } from '../platform/crypto/key-ring.ts'
import type { Database } from '../platform/database/database.ts'
import { BILLING_INVARIANTS } from './billing.ts'
import { BODY_INVARIANTS } from './bodies.ts'
import { CHAIN_INVARIANTS } from './chain.ts'
import { EVENT_INVARIANTS } from './events.ts'
import { type Breach, countRows, type Invariant } from './invariant.ts'
import { JOURNAL_INVARIANTS } from './journal.ts'
import { LINK_INVARIANTS } from './links.ts'
import { OPERATION_INVARIANTS } from './operations.ts'
import { PAYOUT_INVARIANTS } from './payouts.ts'
import { PENDING_ORDER_INVARIANTS } from './pending-orders.ts'
import { PROTECTED_INVARIANTS } from './protected.ts'
import { RECEIPT_INVARIANTS } from './receipts.ts'
import { SALE_INVARIANTS } from './sales.ts'
import { EVERYTHING, type Scope } from './scope.ts'
import { SEALED_INVARIANTS } from './sealed.ts'
import { SEALS_HOLD } from './seals.ts'

export const INVARIANTS: readonly Invariant[] = [
  ...JOURNAL_INVARIANTS,
  ...CHAIN_INVARIANTS,
  SEALS_HOLD,
  ...LINK_INVARIANTS,
  ...SALE_INVARIANTS,
  ...RECEIPT_INVARIANTS,
  ...PENDING_ORDER_INVARIANTS,
  ...BILLING_INVARIANTS,
  ...PAYOUT_INVARIANTS,
  ...EVENT_INVARIANTS,
  ...BODY_INVARIANTS,
  ...OPERATION_INVARIANTS,
  ...SEALED_INVARIANTS,
  ...PROTECTED_INVARIANTS,
]

export interface InvariantResult {
  name: string
  statement: string
  /** Rows checked. */
  rows: number
  breaches: Breach[]
  ms: number
}

/** What is checked, and the keys that it was made with. A platform is one. */
export interface Books {
  database: Database
  keys: AppKeys
}

export interface VerifyOptions {
  scope?: Scope
  /** Called before each check. */
  onProgress?: (name: string, done: number, total: number) => void
}

/** Checks every invariant over the live database, for the rows of the scope (by default all); reads only. */
export async function verifyBooks(
  { database, keys }: Books,
  { scope = EVERYTHING, onProgress }: VerifyOptions = {},
): Promise<InvariantResult[]> {
  const results: InvariantResult[] = []
  const counted = new Map<string, number>()
  for (const { name, statement, table, breaches: check } of INVARIANTS) {
    onProgress?.(name, results.length, INVARIANTS.length)
    const start = performance.now()
    const rows = counted.get(table) ?? (await countRows(database.reader, table, scope))
    counted.set(table, rows)
    const breaches = await check(database.reader, keys, scope)
    results.push({ name, statement, rows, breaches, ms: performance.now() - start })
  }
  return results
}
