import { type RawBuilder, sql } from 'kysely'
import { firstIdAt } from '../platform/ids.ts'

/** The end of a ledger up to which its chain was verified. */
export interface VerifiedHead {
  ledgerId: string
  sequence: number
  hash: string
}

/** What an earlier verification has covered. */
export interface Covered {
  /** The last seal that was verified. */
  seal: { position: number; digest: string }
  /** Where each ledger ended at that seal. */
  heads: readonly VerifiedHead[]
  /** Rows whose ids were made before this time were verified, unless they have changed since (epoch ms). */
  before: number
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
    if (!this.covered) return sql`true`
    return sql`${sql.ref(saleId)} in (${this.#newSales(sql`again.id`)})`
  }

  /** On the id of an event: also the events of sales that were decided again. */
  isNewEvent(eventId: string): RawBuilder<boolean> {
    if (!this.covered) return sql`true`
    return sql`(${this.isNew(eventId)} or ${sql.ref(eventId)} in (${this.#decidedAgain(sql`again.event_id`)})
      or ${sql.ref(eventId)} in (${this.#decidedAgain(sql`former.event_id`)}))`
  }

  #newSales(column: RawBuilder<unknown>): RawBuilder<unknown> {
    return sql`select id from sales where ${this.isNew('sales.id')} union all ${this.#decidedAgain(column)}`
  }

  #decidedAgain(column: RawBuilder<unknown>): RawBuilder<unknown> {
    return sql`select ${column} from sale_decisions as former join sales as again on again.id = former.sale_id
      where again.decided_at >= ${this.covered?.before}`
  }
}

export const EVERYTHING = new Scope(null)
