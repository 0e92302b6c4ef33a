import { defineEntity } from '@mikro-orm/core'
import { count, id, text } from '../platform/columns.ts'

/** Tracked visits of a link by day (whole days since 1970, UTC): what its conversion is reckoned from. */
export const LinkDay = defineEntity({
  name: 'LinkDay',
  tableName: 'link_days',
  properties: { link_id: id().primary(), day: count().primary(), visits: count() },
  indexes: [{ name: 'link_days_day', properties: ['day'] }],
})

/** The keyed hash of the mailbox behind each account's e-mail address, so that accounts of one person can be found. */
export const Mailbox = defineEntity({
  name: 'Mailbox',
  tableName: 'mailboxes',
  properties: { user_id: id().primary(), fingerprint: text() },
  indexes: [{ name: 'mailboxes_fingerprint', properties: ['fingerprint'] }],
})
