import { isMailEvent } from '../../../../shared/events.ts'
import { mailMode } from '../../../platform/config.ts'
import type { Binding } from '../../../platform/crypto/vault.ts'
import { afterCommit, type Tx } from '../../../platform/database/database.ts'
import { withDigest } from '../../../platform/database/protected-rows.ts'
import type { Platform } from '../../../platform/platform.ts'
import { countMails, findRecipients, insertMail, type MailRow, optOutsOf } from './mail.store.ts'
import { GIVE_UP_AFTER_MS, limitOf } from './mail-delivery.rule.ts'
import type { MailContent } from './mail-texts.ts'

export type NewMail = MailContent & {
  userId: string
  /** The id of what the mail is about: a second mail of this kind about it is not written. */
  about?: string
  /** The token of the mail's link, valid until `expiresAt` (epoch ms). */
  token?: { text: string; expiresAt: number }
}

/**
 * What became of a mail: written, or not, because no mail is sent at all, the user does not want it, the address has had its share, or
 * there is one already.
 */
type MailOutcome = 'queued' | 'off' | 'opted_out' | 'limited' | 'known'

/** The signal for mails that are due now. */
export const MAIL_SIGNAL = 'mails'

/** Writes a mail to a user in the transaction that causes it. The worker sends it after the commit. */
export async function sendMail(platform: Platform, tx: Tx, mail: NewMail): Promise<MailOutcome> {
  if (mailMode(platform.config) === 'off') return 'off'
  const { userId, kind, facts, about, token } = mail
  const [user] = await findRecipients(tx, [userId])
  if (!user) throw new Error(`user ${userId} of a mail not found`)
  if (isMailEvent(kind) && (await optOutsOf(tx, userId)).includes(kind)) return 'opted_out'
  const { most, withinMs } = limitOf(kind)
  const now = platform.clock.now()
  if ((await countMails(tx, user.email, kind, now - withinMs)) >= most) {
    platform.log.warn({ accountId: userId, kind }, 'a mail was not written: too many to this address')
    return 'limited'
  }
  const row: MailRow = withDigest(platform.keys, 'mails', {
    id: platform.ids.next(),
    user_id: userId,
    address: user.email,
    kind,
    facts: JSON.stringify(facts),
    token_encrypted: null,
    event_key: about === undefined ? null : `${kind} ${about} ${userId}`,
    state: 'queued',
    attempts: 0,
    next_try_at: now,
    lease_token: null,
    lease_until: 0,
    last_error: null,
    created_at: now,
    give_up_at: token?.expiresAt ?? now + GIVE_UP_AFTER_MS,
    finished_at: null,
  })
  if (token) row.token_encrypted = platform.vault.seal(token.text, tokenBinding(row))
  if (!(await insertMail(tx, row))) return 'known'
  afterCommit(tx, () => platform.topics.send(MAIL_SIGNAL))
  return 'queued'
}

/** Binds a mail's encrypted token to its row. */
export function tokenBinding(row: Pick<MailRow, 'id' | 'user_id' | 'address' | 'kind'>): Binding {
  return { purpose: 'mail.token', row: row.id, owner: row.user_id, facts: [row.address, row.kind] }
}
