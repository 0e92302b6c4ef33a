import { sql } from 'kysely'
import type { Queries } from '../platform/database/database.ts'
import { countRows, type ScanCount, type ScanPage, type ScanScope } from '../platform/database/keyset-scan.ts'

/**
 * Clicks have no index but their key, so every caller's walk passes all of them by, and says at each whether it is the
 * caller's: a search for the next own one would have no bound.
 */
function stepOf(db: Queries, scope: ScanScope, step: ScanPage) {
  const page = db
    .selectFrom('clicks')
    .selectAll()
    .where('id', '<', step.below)
    .orderBy('id', 'desc')
    .limit(step.size)
  return db
    .selectFrom(page.as('click'))
    .leftJoin('affiliate_links as link', 'link.id', 'click.link_id')
    .select(['click.id', 'link.slug', 'click.tracked', 'click.kind', createdAtIn(scope).as('created_at')])
    .orderBy('click.id', 'desc')
}

function createdAtIn(scope: ScanScope) {
  if (scope === 'all') return sql<number | null>`case when link.id is not null then click.created_at end`
  return 'merchantId' in scope
    ? sql<number | null>`case when link.merchant_id = ${scope.merchantId} then click.created_at end`
    : sql<number | null>`case when link.creator_id = ${scope.creatorId} then click.created_at end`
}

/** A page of clicks; `created_at` is `null` for a click on another user's link. */
export function readClicks(db: Queries, scope: ScanScope, step: ScanPage) {
  return stepOf(db, scope, step).execute()
}

export function countClicks(db: Queries, scope: ScanScope, step: ScanPage): Promise<ScanCount> {
  return countRows(db, step, stepOf(db, scope, step))
}
