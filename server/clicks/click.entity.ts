import { defineEntity } from '@mikro-orm/core'
import { count, enumText, epochMs, id, oneOf, text } from '../platform/database/columns.ts'

const CLICK_KINDS = ['visit', 'bot', 'prefetch', 'head', 'embedded'] as const
export type ClickKind = (typeof CLICK_KINDS)[number]

/**
 * One row a followed link, written on the hottest path: no foreign keys, and no index besides the key, whose
 * random part makes it fit to be the tracking reference.
 */
export const Click = defineEntity({
  name: 'Click',
  tableName: 'clicks',
  properties: {
    id: id().primary(),
    link_id: id(),
    /** 1 when the visitor was sent on with a tracking reference. */
    tracked: count(),
    kind: enumText<ClickKind>(),
    /** 1 when it only repeats a tracked visit of the same visitor on the same link that was counted within the hour. */
    repeated: count().default(0),
    created_at: epochMs(),
    /** The creator's own mark of the placement: the parameter `sub` of the visit. */
    sub_id: text().strictNullable(),
  },
  checks: [oneOf('clicks', 'kind', CLICK_KINDS)],
})

/** Visits a link, of all clicks but those that are not counted yet. They stay when old clicks go. */
export const ClickCount = defineEntity({
  name: 'ClickCount',
  tableName: 'click_counts',
  properties: {
    link_id: id().primary(),
    clicks: count(),
    /** Of them, those that repeat none. */
    unique_clicks: count().default(0),
  },
})

/**
 * Clicks that are not yet part of the counts. A trigger writes them in the transaction of the clicks; the roll-up moves them to the
 * counts.
 */
export const UncountedClicks = defineEntity({
  name: 'UncountedClicks',
  tableName: 'uncounted_clicks',
  properties: {
    /** SQLite: that of the link, so that its clicks of a slot share a row. PostgreSQL: that of one of the clicks, so that processes do not wait. */
    id: id().primary(),
    /** Quarters of an hour since 1970, UTC: in every zone a day begins with one. */
    slot: count().primary(),
    /** Empty for clicks without one. */
    sub_id: text().primary(),
    link_id: id(),
    /** Tracked clicks of the kind `visit`. */
    visits: count(),
    /** Of them, those that repeat none. */
    unique_visits: count(),
    /** Tracked clicks of every kind. */
    clicks: count(),
    /** Clicks of the kind `visit` without a tracking reference. */
    untracked_visits: count(),
  },
})

/** Tracked visits of a link by local day in BILLING_TIMEZONE. They stay when old clicks go. */
export const ClickDay = defineEntity({
  name: 'ClickDay',
  tableName: 'click_days',
  properties: {
    link_id: id().primary(),
    /** Empty for all visits of the day, with and without a sub id. */
    sub_id: text().primary(),
    /** Days since 1970. */
    day: count().primary(),
    visits: count(),
    /** Of them, those that repeat none. */
    unique_visits: count(),
  },
})

/** PostgreSQL: visitors counted within the last hours, by any web process. A crash of the server empties it. */
export const CountedVisitor = defineEntity({
  name: 'CountedVisitor',
  tableName: 'counted_visitors',
  properties: {
    link_id: id().primary(),
    /** The hash of the address, by a key that is kept for a day, and the mark of the user agent. */
    visitor: text().primary(),
    counted_at: epochMs(),
  },
})
