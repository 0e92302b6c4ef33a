import { defineEntity } from '@mikro-orm/core'
import { count, id, text } from '../platform/database/columns.ts'

/** Clicks of a link by day (whole days since 1970, UTC), for its conversion. */
export const LinkDay = defineEntity({
  name: 'LinkDay',
  tableName: 'link_days',
  properties: {
    link_id: id().primary(),
    day: count().primary(),
    /** Tracked clicks of the kind `visit`. */
    visits: count(),
    /** Tracked clicks of every kind: each can lead to an order. */
    clicks: count().default(0),
    /** Clicks of the kind `visit` without a tracking reference. */
    untracked_visits: count().default(0),
  },
  indexes: [{ name: 'link_days_day', properties: ['day'] }],
})

/** The keyed hash of each account's mailbox, to find accounts of one person. */
export const Mailbox = defineEntity({
  name: 'Mailbox',
  tableName: 'mailboxes',
  properties: { user_id: id().primary(), fingerprint: text() },
  indexes: [{ name: 'mailboxes_fingerprint', properties: ['fingerprint'] }],
})
