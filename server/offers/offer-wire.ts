import { basisPointsToPercent } from '../../shared/rates.ts'
import type { Offer } from '../../shared/schemas/offers.ts'
import { isoTime } from '../platform/clock.ts'
import type { ShownOffer } from './offers.service.ts'

/** An offer as every procedure that returns one sends it. */
export function wireOffer(offer: ShownOffer): Offer {
  return {
    id: offer.id,
    merchant: offer.merchant,
    title: offer.title,
    description: offer.description,
    product_url: offer.product_url,
    image_url: offer.image_url,
    category: offer.category,
    niche: offer.niche,
    commission_rate: basisPointsToPercent(offer.commission_rate),
    status: offer.status,
    vetting: offer.vetting,
    vetting_reason: offer.vetting_reason,
    attribution_window_days: offer.attribution_window_days,
    product_ids: offer.product_ids,
    created_at: isoTime(offer.created_at),
    updated_at: isoTime(offer.updated_at),
  }
}
