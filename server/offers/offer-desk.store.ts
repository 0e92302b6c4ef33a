import type { BasisPoints } from '../../shared/rates.ts'
import type { Queries } from '../platform/database/database.ts'
import type { OfferStatus } from './offer-status.rule.ts'
import { OFFER_COLUMNS, type OfferRow } from './offers.store.ts'

export interface DeskFilter {
  merchantId: string | null
  status: OfferStatus | null
  /** Only rates above this one. */
  above: BasisPoints | null
  /** Only offers older than this id. */
  before: string | null
  limit: number
}

/** Every merchant's offers in every status, newest first: for operators. */
export function findEveryOffer(db: Queries, filter: DeskFilter): Promise<OfferRow[]> {
  let query = db.selectFrom('offers').select(OFFER_COLUMNS).orderBy('id', 'desc').limit(filter.limit)
  if (filter.merchantId !== null) query = query.where('merchant_id', '=', filter.merchantId)
  if (filter.status !== null) query = query.where('status', '=', filter.status)
  if (filter.above !== null) query = query.where('commission_rate', '>', filter.above)
  if (filter.before !== null) query = query.where('id', '<', filter.before)
  return query.execute()
}
