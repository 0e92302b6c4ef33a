import { isMailEvent, MAIL_EVENTS } from '../../../../shared/events.ts'
import type { Role } from '../../../../shared/schemas/common.ts'
import type { Notifications } from '../../../../shared/schemas/notifications.ts'
import { OPERATOR, recordAudit } from '../../../flags/audit.service.ts'
import { invalidFields } from '../../../platform/api/refusal.ts'
import type { Queries } from '../../../platform/database/database.ts'
import type { Platform } from '../../../platform/platform.ts'
import { addOptOut, optOutsOf, removeOptOut } from './mail.store.ts'

export interface Account {
  userId: string
  role: Role
}

/** Which events of the account's role are notified by e-mail: all, unless their owner turned some off. */
export function readNotifications(platform: Platform, account: Account): Promise<Notifications> {
  return choicesOf(platform.database.reader, account)
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
