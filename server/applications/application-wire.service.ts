import { basisPointsToPercent } from '../../shared/rates.ts'
import type { Application } from '../../shared/schemas/applications.ts'
import { linkUrl } from '../links/links.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import type { ShownApplication } from './applications.service.ts'

/** An application as its creator and its merchant see it. */
export function wireApplication(platform: Platform, row: ShownApplication): Application {
  return {
    id: row.id,
    offer_id: row.offer_id,
    creator: row.creator,
    status: row.status,
    message: row.message,
    promotion_url: row.promotion_url,
    locked_commission_rate: row.link && basisPointsToPercent(row.link.commissionRate),
    affiliate_link: row.link && { slug: row.link.slug, url: linkUrl(platform, row.link.slug) },
    decision_reason: row.decision_reason,
    decided_at: row.decided_at === null ? null : isoTime(row.decided_at),
    created_at: isoTime(row.created_at),
  }
}
