import { timingSafeEqual } from 'node:crypto'
import { isMailEvent, MAIL_EVENTS, type MailEvent } from '../../../../shared/events.ts'
import type { Role } from '../../../../shared/schemas/common.ts'
import type { Notifications } from '../../../../shared/schemas/notifications.ts'
import { OPERATOR, recordAudit } from '../../../flags/audit.service.ts'
import { invalidFields, Refusal } from '../../../platform/api/refusal.ts'
import type { Queries } from '../../../platform/database/database.ts'
import { isId } from '../../../platform/ids.ts'
import type { Platform } from '../../../platform/platform.ts'
import { addOptOut, findRecipients, optOutsOf, removeOptOut } from './mail.store.ts'

interface Account {
  userId: string
  role: Role
}

/** Which events of the account's role are notified by e-mail: all, unless their owner turned some off. */
export function readNotifications({ database }: Platform, account: Account): Promise<Notifications> {
  return choicesOf(database.reader, account)
}

/**
 * Changes the given choices and returns all; with `operator` for a user who asked by e-mail, which is audited. Refuses an event of another
 * role with `validation_failed`.
 */
export async function updateNotifications(
  platform: Platform,
  account: Account,
  change: Notifications,
  { operator = false }: { operator?: boolean } = {},
): Promise<Notifications> {
  const { userId, role } = account
  const events: readonly string[] = MAIL_EVENTS[role]
  const foreign = Object.keys(change.email).filter((event) => !events.includes(event))
  if (foreign.length > 0) {
    throw invalidFields(
      foreign.map((event) => ({ path: `email.${event}`, message: `is not an event for the role ${role}` })),
    )
  }
  return platform.database.transaction(async (tx) => {
    const before = await choicesOf(tx, account)
    for (const [event, wanted] of Object.entries(change.email)) {
      if (!isMailEvent(event) || wanted === undefined) continue
      if (wanted) await removeOptOut(tx, userId, event)
      else await addOptOut(tx, { user_id: userId, event, created_at: platform.clock.now() })
    }
    const after = await choicesOf(tx, account)
    if (operator) {
      await recordAudit(platform, tx, {
        actor: OPERATOR,
        action: 'mail.preferences',
        subjectType: 'user',
        subjectId: userId,
        before,
        after,
      })
    }
    return after
  })
}

async function choicesOf(db: Queries, { userId, role }: Account): Promise<Notifications> {
  const off = await optOutsOf(db, userId)
  return { email: Object.fromEntries(MAIL_EVENTS[role].map((event) => [event, !off.includes(event)])) }
}

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

export const LINK_NOT_VALID =
  'This link is not valid. Turn e-mails off by PATCH /me/notifications, or reply to one with "unsubscribe".'

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
  throw new Refusal('not_found', LINK_NOT_VALID)
}

/** Turns e-mails about the token's event off. Again changes nothing. Refuses with `not_found`. */
export async function unsubscribe(platform: Platform, token: string): Promise<MailEvent> {
  const { userId, event } = readUnsubscribeToken(platform, token)
  const [user] = await findRecipients(platform.database.reader, [userId])
  if (!user) throw new Refusal('not_found', 'The account of this link was not found.')
  await updateNotifications(platform, { userId, role: user.role }, { email: { [event]: false } })
  return event
}
