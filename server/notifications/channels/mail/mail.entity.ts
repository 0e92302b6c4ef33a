import { defineEntity } from '@mikro-orm/core'
import {
  count,
  enumText,
  epochMs,
  id,
  json,
  oneOf,
  refersTo,
  text,
} from '../../../platform/database/columns.ts'
import { User } from '../../../users/user.entity.ts'

const MAIL_STATES = ['queued', 'sent', 'failed'] as const
export type MailState = (typeof MAIL_STATES)[number]

/** An e-mail to a user, written in the transaction that causes it. Its id is in the Message-ID, so a repeat is recognizable. */
export const Mail = defineEntity({
  name: 'Mail',
  tableName: 'mails',
  properties: {
    id: id().primary(),
    user_id: () => refersTo(User, 'user_id'),
    /** The user's address when the mail was written. */
    address: text(),
    kind: text(),
    /** JSON: what the text says, by kind. */
    facts: json(),
    /** The encrypted token of the mail's link; `null` without one and once the mail is sent or has failed. */
    token_encrypted: text().strictNullable(),
    /** The event that the mail is about. There is one mail per event and user. */
    event_key: text().strictNullable(),
    /** Keyed digest of what the row causes. */
    row_digest: text(),
    state: enumText<MailState>(),
    attempts: count(),
    next_try_at: epochMs(),
    lease_token: text().strictNullable(),
    lease_until: epochMs(),
    /** Why the last attempt did not succeed. */
    last_error: text().strictNullable(),
    created_at: epochMs(),
    /** When the mail fails if it has not been sent. */
    give_up_at: epochMs(),
    finished_at: epochMs().strictNullable(),
  },
  checks: [
    oneOf('mails', 'state', MAIL_STATES),
    { name: 'mails_finished_check', expression: "(state = 'queued') = (finished_at is null)" },
    { name: 'mails_token_check', expression: "state = 'queued' or token_encrypted is null" },
  ],
  uniques: [{ name: 'mails_event', properties: ['event_key'] }],
  indexes: [
    { name: 'mails_due', properties: ['next_try_at', 'id'], where: "state = 'queued'" },
    { name: 'mails_address', properties: ['address', 'created_at'] },
    { name: 'mails_user', properties: ['user_id', 'id'] },
    { name: 'mails_finished', properties: ['finished_at'], where: 'finished_at is not null' },
  ],
})

/** An event that a user receives no e-mail about. */
export const MailOptOut = defineEntity({
  name: 'MailOptOut',
  tableName: 'mail_opt_outs',
  properties: {
    user_id: () => refersTo(User, 'user_id').primary(),
    event: text().primary(),
    created_at: epochMs(),
  },
})
