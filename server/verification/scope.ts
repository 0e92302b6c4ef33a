import { type RawBuilder, sql } from 'kysely'
import type { Head } from '../ledger/chain.rule.ts'
import { firstIdAt } from '../platform/ids.ts'

/** What an earlier verification has covered. */
export interface Covered {
  /** The last seal that was verified. */
  seal: { position: number; digest: string }
  /** Where each ledger ended at that seal. */
  heads: readonly Head[]
  /** Rows whose ids were made before this time were verified, unless they have changed since (epoch ms). */
  before: number
  /** Sales that were decided again since, and the events of both decisions. */
  decidedAgain: { sales: readonly string[]; events: readonly string[] }
}

/**
 * Which rows a verification checks: all of them, or those that an earlier one has not covered. Each method returns a condition on a
 * column. Ids are UUIDv7, so they are in the order of time.
 */
export class Scope {
  readonly covered: Covered | null

  constructor(covered: Covered | null) {
    this.covered = covered
  }

  /** On the id of a row that does not change, or that was final when it was covered (events). */
  isNew(id: string): RawBuilder<boolean> {
    if (!this.covered) return sql`true`
    return sql`${sql.ref(id)} >= ${firstIdAt(this.covered.before)}`
  }

  /** On the id of a sale: also sales that were decided again. */
  isNewSale(saleId: string): RawBuilder<boolean> {
    return this.#isNewOr(saleId, this.covered?.decidedAgain.sales)
  }

  /** On the id of an event: also the events of sales that were decided again. */
  isNewEvent(eventId: string): RawBuilder<boolean> {
    return this.#isNewOr(eventId, this.covered?.decidedAgain.events)
  }

  /** Constants rather than a subquery, so that both databases find the rows by the index, page by page. */
  #isNewOr(id: string, others: readonly string[] = []): RawBuilder<boolean> {
    if (others.length === 0) return this.isNew(id)
    const list = sql.join(others.map((other) => sql.lit(other)))
    return sql`(${this.isNew(id)} or ${sql.ref(id)} in (${list}))`
  }
}

export const EVERYTHING = new Scope(null)
