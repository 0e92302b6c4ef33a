import { OPERATOR, recordAudit } from '../../../flags/audit.service.ts'
import { type PageRequest, pageById } from '../../../platform/api/page.ts'
import { Refusal } from '../../../platform/api/refusal.ts'
import { mailMode } from '../../../platform/config.ts'
import { IntegrityError, UnknownKeyError } from '../../../platform/crypto/vault.ts'
import { afterCommit } from '../../../platform/database/database.ts'
import { changeRow, lockRows } from '../../../platform/database/protected-rows.ts'
import { isId } from '../../../platform/ids.ts'
import type { Platform } from '../../../platform/platform.ts'
import { composeMail } from './deliver-mails.service.ts'
import { MAIL_SIGNAL, tokenBinding } from './mail.service.ts'
import { findMail, findMails, findRecipients, type MailFilter, type MailRow } from './mail.store.ts'
import { GIVE_UP_AFTER_MS, WITH_TOKEN } from './mail-delivery.rule.ts'

export type { MailRow } from './mail.store.ts'

/** Mails to all users or one, newest first, for the operator. Refuses another list's cursor with `validation_failed`. */
export function listMails({ database }: Platform, filter: MailFilter & PageRequest) {
  return pageById(filter, (page) => findMails(database.reader, filter, page))
}

/** A mail with its text. Shows the token of its link only where mail is kept in files, for development. Refuses with `not_found`. */
export async function showMail(platform: Platform, id: string) {
  const row = isId(id) ? await findMail(platform.database.reader, id) : undefined
  if (!row) throw mailNotFound(id)
  const [user] = await findRecipients(platform.database.reader, [row.user_id])
  const { subject, text } = composeMail(platform, row, user, shownToken(platform, row))
  return { row, subject, text }
}

function shownToken(platform: Platform, row: MailRow): string | null {
  if (!WITH_TOKEN.includes(row.kind)) return null
  if (row.token_encrypted === null || mailMode(platform.config) !== 'file') return 'HIDDEN'
  try {
    return platform.vault.open(row.token_encrypted, tokenBinding(row))
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) return 'HIDDEN'
    throw error
  }
}

/**
 * Makes a mail that failed or waits due now. Refuses with `not_found`, and with `conflict` a mail that was sent or whose link has
 * ended with it.
 */
export function retryMail(platform: Platform, id: string): Promise<MailRow> {
  return platform.database.transaction(async (tx) => {
    const [mail] = isId(id) ? await lockRows(tx, 'mails', { id }) : []
    if (!mail) throw mailNotFound(id)
    if (mail.state === 'sent') throw new Refusal('conflict', 'This mail was sent.')
    if (mail.state === 'failed' && WITH_TOKEN.includes(mail.kind)) {
      throw new Refusal('conflict', 'The link of this mail is no longer valid. The user can request another.')
    }
    const now = platform.clock.now()
    const before = { state: mail.state, attempts: mail.attempts, last_error: mail.last_error }
    const give_up_at = now + GIVE_UP_AFTER_MS
    const again = { state: 'queued', attempts: 0, finished_at: null, give_up_at } as const
    await changeRow(tx, 'mails', mail, { next_try_at: now, ...(mail.state === 'failed' && again) })
    await recordAudit(platform, tx, {
      actor: OPERATOR,
      action: 'mail.retry',
      subjectType: 'mail',
      subjectId: mail.id,
      before,
      after: { state: 'queued' },
    })
    afterCommit(tx, () => platform.topics.send(MAIL_SIGNAL))
    return mail
  })
}

function mailNotFound(id: string): Refusal {
  return new Refusal('not_found', `Mail ${id} not found.`)
}
