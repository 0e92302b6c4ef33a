import { timingSafeEqual } from 'node:crypto'
import { isMailEvent, type MailEvent } from '../../../../shared/events.ts'
import { Refusal } from '../../../platform/api/refusal.ts'
import { isId } from '../../../platform/ids.ts'
import type { Platform } from '../../../platform/platform.ts'
import { findRecipient } from './mail.store.ts'
import { updateNotifications } from './notifications.service.ts'

const PURPOSE = 'mail.unsubscribe'

/** The address that turns e-mails of one account about one event off. It works without a log-in, and does not end. */
export function unsubscribeUrl(
  { publicBaseUrl, vault }: Pick<Platform, 'publicBaseUrl' | 'vault'>,
  userId: string,
  event: MailEvent,
): string {
  const signed = `${userId}.${event}`
  return `${publicBaseUrl}/account/unsubscribe?token=${signed}.${vault.fingerprint(signed, PURPOSE)}`
}

/** The account and event of such an address's token. Refuses with `not_found`. */
export function readUnsubscribeToken(
  { vault }: Platform,
  token: string,
): { userId: string; event: MailEvent } {
  const [, signed = '', userId = '', event = '', given = ''] =
    /^(([0-9a-f-]{36})\.([a-z_.]{1,64}))\.([0-9a-f]{64})$/.exec(token) ?? []
  const isKnown = isId(userId) && isMailEvent(event)
  const holds = vault
    .fingerprints(signed, PURPOSE)
    .some((right) => given.length === right.length && timingSafeEqual(Buffer.from(given), Buffer.from(right)))
  if (isKnown && holds) return { userId, event }
  throw new Refusal(
    'not_found',
    'This link is not valid. Turn e-mails off by PATCH /me/notifications, or reply to one with "unsubscribe".',
  )
}

/** Turns e-mails about the token's event off. Again changes nothing. Refuses with `not_found`. */
export async function unsubscribe(platform: Platform, token: string): Promise<MailEvent> {
  const { userId, event } = readUnsubscribeToken(platform, token)
  const user = await findRecipient(platform.database.reader, userId)
  if (!user) throw new Refusal('not_found', 'The account of this link was not found.')
  await updateNotifications(platform, { userId, role: user.role }, { email: { [event]: false } })
  return event
}
