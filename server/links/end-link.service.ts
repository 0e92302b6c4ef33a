import { recordAudit } from '../flags/audit.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { LINK_TARGETS } from '../offers/offers.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { isoTime } from '../platform/clock.ts'
import { afterCommit } from '../platform/database/database.ts'
import { changeRow } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { changeCoupon } from './coupons.service.ts'
import {
  type LinkRecord,
  linkRecordOf,
  lockLink,
  type ShownLink,
  shownLinks,
  wireResolved,
} from './links.service.ts'

interface LinkEnd {
  slug: string
  /** The link's merchant; `OPERATOR` may end every link. */
  actor: string
  reason: string | null
}

/**
 * Ends a link for good: later visits are untracked, and its coupon code is no longer in force. Clicks before pay within their window.
 * Again changes nothing. Refuses with `not_found`, and with `already_decided` when it was ended for another reason.
 */
export function endLink(platform: Platform, { slug, actor, reason }: LinkEnd): Promise<LinkRecord> {
  return platform.database.transaction(async (tx) => {
    const row = await lockLink(tx, slug, actor)
    if (row.ended_at !== null) {
      if (reason === null || reason === row.end_reason) return linkRecordOf(row)
      throw new Refusal('already_decided', 'This link has ended already, for another reason.')
    }
    // Not before it began, also when the clock was set back.
    const ended_at = Math.max(platform.clock.now(), row.created_at)
    await changeRow(tx, 'affiliate_links', row, { ended_at, end_reason: reason })
    await changeCoupon(platform, tx, row, { actor, code: null })
    await recordAudit(platform, tx, {
      actor,
      action: 'link.end',
      subjectType: 'affiliate_link',
      subjectId: row.id,
      reason,
      before: { ended_at: null },
      after: { ended_at: isoTime(ended_at) },
    })
    afterCommit(tx, () => platform.caches.drop(LINK_TARGETS, row.slug))
    const link = linkRecordOf(row)
    const [shown] = (await shownLinks(platform, [link], tx)) as [ShownLink]
    const data = { ...wireResolved(platform, shown), ended_at: isoTime(ended_at), end_reason: reason }
    await publishEvents(platform, tx, [
      { type: 'link.ended', accountId: link.creator_id, subjectId: link.id, data },
    ])
    return link
  })
}
