import { z } from 'zod'
import { MAIL_EVENT_NAMES, type MailEvent } from '../events.ts'

/** Choices by event: `true` sends an e-mail. */
const choices = z.strictObject(
  Object.fromEntries(MAIL_EVENT_NAMES.map((event) => [event, z.boolean().optional()])) as Record<
    MailEvent,
    z.ZodOptional<z.ZodBoolean>
  >,
  {
    error: ({ code }) =>
      code === 'unrecognized_keys'
        ? 'is not an event of GET /me/notifications; e-mails about the security of an account cannot be turned off'
        : undefined,
  },
)

const DESCRIPTION =
  "Which events are notified by e-mail; only those of the account's role. `sale.accepted` is the first accepted sale."

export const notifications = z
  .object({ email: choices.describe(DESCRIPTION) })
  .meta({ id: 'Notifications', example: { email: { 'application.decided': true, 'payout.paid': false } } })
export type Notifications = z.infer<typeof notifications>

export const updateNotificationsInput = z.strictObject({
  email: choices.describe('The events to change; others stay as they are.'),
})
