import { z } from 'zod'
import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { suspensionInput } from '../../shared/schemas/admin.ts'
import { notifications, updateNotificationsInput } from '../../shared/schemas/notifications.ts'
import {
  changePasswordInput,
  confirmTotpInput,
  disableTotpInput,
  endSessionInput,
  listSessionsInput,
  loginInput,
  noInput,
  recoveryCodes,
  registerInput,
  renewRecoveryCodesInput,
  session,
  sessionList,
  stepUpInput,
  totpEnrollment,
  type UserWire,
  updateMeInput,
  user,
} from '../../shared/schemas/users.ts'
import { readNotifications, updateNotifications } from '../mail/notifications.service.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure, publicProcedure, router } from '../platform/api/procedure.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import { recoveryProcedures } from './account-recovery.procedures.ts'
import {
  changePassword,
  endOtherSessions,
  endOwnSession,
  login,
  logout,
  type OpenedSession,
  register,
  stepUp,
} from './credentials.service.ts'
import { type Profile, profileOf, updateProfile } from './profile.service.ts'
import { confirmOwnTotp, disableTotp, renewRecoveryCodes, startOwnTotp } from './second-factor.service.ts'
import { listSessions } from './sessions.service.ts'
import { wireDestinations, wireSession, wireUser } from './user-wire.ts'
import { reinstateUser, suspendUser } from './users.service.ts'

const EVERY_ROLE = ['merchant', 'creator', 'admin'] as const

function profileWire(
  platform: Platform,
  { user, hasSecondFactor, destinations, balance, account, billingAccount }: Profile,
): UserWire {
  return {
    ...wireUser(user),
    second_factor: hasSecondFactor,
    ...(destinations && wireDestinations(destinations)),
    ...(balance && {
      balance: {
        pending: formatMoney(balance.pending),
        released: formatMoney(balance.released),
        in_transit: formatMoney(balance.inTransit),
        paid: formatMoney(balance.paid),
        payout_threshold: formatMoney(platform.config.PAYOUT_THRESHOLD),
        currency: CURRENCY,
      },
    }),
    ...(account && {
      account: {
        open_cycle_due: formatMoney(account.expected?.amountDue ?? 0),
        unpaid: formatMoney(account.receivable),
        credit_available: formatMoney(account.availableCredit),
        currency: CURRENCY,
      },
    }),
    ...(billingAccount !== undefined && { billing_account: billingAccount }),
  }
}

function sessionWire(platform: Platform, opened: OpenedSession) {
  return {
    user: profileWire(platform, opened.profile),
    token: opened.token,
    expires_at: isoTime(opened.expiresAt),
    ...(opened.setupOnly && { second_factor_setup_required: true }),
  }
}

export const authRouter = router({
  ...recoveryProcedures,

  register: publicProcedure({
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/register', status: 201 },
    summary: 'Open an account as a merchant or a creator, and log in',
    errors: ['email_taken'],
  })
    .input(registerInput)
    .output(session)
    .mutation(async ({ ctx, input }) => {
      const { email, password, role, display_name } = input
      const opened = await register(ctx.platform, {
        email,
        password,
        role,
        displayName: display_name,
        address: ctx.clientAddress,
        agent: ctx.agent,
      })
      return sessionWire(ctx.platform, opened)
    }),

  login: publicProcedure({
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/login' },
    summary: 'Log in',
    description:
      "An unknown e-mail and a wrong password are answered alike. The token is valid for 30 days, an admin's in production for 12 hours. With a second factor on, send its code too; without one the answer is `second_factor_required`, once the password is right. In production an admin without a second factor gets a token that can only set one up (`second_factor_setup_required`).",
    errors: ['invalid_credentials', 'second_factor_required', 'account_suspended'],
  })
    .input(loginInput)
    .output(session)
    .mutation(async ({ ctx, input }) => {
      const { email, password, code } = input
      const { platform, clientAddress, agent } = ctx
      return sessionWire(platform, await login(platform, email, password, clientAddress, { agent, code }))
    }),

  logout: procedure(EVERY_ROLE, {
    rest: { method: 'POST', path: '/auth/logout', status: 204 },
    summary: 'End this session',
    duringSetup: true,
  })
    .input(noInput)
    .output(z.void())
    .mutation(({ ctx }) => logout(ctx.platform, ctx.actor)),

  listSessions: procedure(EVERY_ROLE, {
    rest: { method: 'GET', path: '/auth/sessions' },
    summary: "The account's open sessions",
  })
    .input(listSessionsInput)
    .output(sessionList)
    .query(async ({ ctx, input }) =>
      mapPage(await listSessions(ctx.platform, ctx.actor.userId, input), (record) => ({
        ...wireSession(record),
        current: record.id === ctx.actor.sessionId,
      })),
    ),

  endSession: procedure(EVERY_ROLE, {
    rest: { method: 'DELETE', path: '/auth/sessions/:id', status: 204 },
    summary: "End one of the account's sessions",
    errors: ['not_found'],
  })
    .input(endSessionInput)
    .output(z.void())
    .mutation(({ ctx, input }) => endOwnSession(ctx.platform, ctx.actor, input.id)),

  endOtherSessions: procedure(EVERY_ROLE, {
    rest: { method: 'DELETE', path: '/auth/sessions', status: 204 },
    summary: 'End every other session',
  })
    .input(noInput)
    .output(z.void())
    .mutation(({ ctx }) => endOtherSessions(ctx.platform, ctx.actor)),

  startTotp: procedure(EVERY_ROLE, {
    rest: { method: 'POST', path: '/auth/totp' },
    summary: 'Start to set up a second factor',
    duringSetup: true,
    description:
      'The factor is off until `POST /auth/totp/confirm` gets a code of the new secret. Starting again replaces the secret.',
    errors: ['conflict'],
    details: { conflict: 'The second factor is on. Turn it off before you set up another one.' },
  })
    .input(noInput)
    .output(totpEnrollment)
    .mutation(async ({ ctx }) => {
      const { secret, otpauthUrl } = await startOwnTotp(ctx.platform, ctx.actor)
      return { secret, otpauth_url: otpauthUrl }
    }),

  confirmTotp: procedure(EVERY_ROLE, {
    rest: { method: 'POST', path: '/auth/totp/confirm' },
    summary: 'Turn the second factor on',
    duringSetup: true,
    description: 'From then on, logging in needs a code of the authenticator app or a recovery code.',
    errors: ['invalid_credentials', 'conflict'],
    details: { conflict: 'Start with POST /auth/totp.' },
  })
    .input(confirmTotpInput)
    .output(recoveryCodes)
    .mutation(async ({ ctx, input }) => ({
      recovery_codes: await confirmOwnTotp(ctx.platform, ctx.actor, input.code),
    })),

  renewRecoveryCodes: procedure(EVERY_ROLE, {
    rest: { method: 'POST', path: '/auth/totp/recovery-codes' },
    summary: 'Replace the recovery codes',
    description:
      'Needs a code of the authenticator app or a recovery code. Answers ten new codes once; the former ones work no more.',
    errors: ['invalid_credentials', 'not_found'],
  })
    .input(renewRecoveryCodesInput)
    .output(recoveryCodes)
    .mutation(async ({ ctx, input }) => ({
      recovery_codes: await renewRecoveryCodes(ctx.platform, ctx.actor, {
        code: input.code,
        address: ctx.clientAddress,
      }),
    })),

  disableTotp: procedure(EVERY_ROLE, {
    rest: {
      method: 'POST',
      path: '/auth/totp/disable',
      status: 204,
      // Some clients drop the body of a DELETE.
      also: {
        method: 'DELETE',
        path: '/auth/totp',
        takesBody: true,
        operationId: 'auth.disableTotpByDelete',
      },
    },
    summary: 'Turn the second factor off',
    description: 'Needs a step-up in the last 10 minutes, and a code: the same one, or another.',
    errors: ['invalid_credentials', 'step_up_required', 'not_found', 'conflict'],
    details: { conflict: 'Admins need their second factor. An operator can reset it.' },
  })
    .input(disableTotpInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      disableTotp(ctx.platform, ctx.actor, { code: input.code, address: ctx.clientAddress }),
    ),

  stepUp: procedure(EVERY_ROLE, {
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/step-up', status: 204 },
    summary: 'Confirm password and code again, for 10 minutes',
    description:
      'With a second factor on, changing a payout destination, a billing account or the password, and turning the second factor off, need it.',
    errors: ['invalid_credentials', 'second_factor_required'],
  })
    .input(stepUpInput)
    .output(z.void())
    .mutation(({ ctx, input }) => stepUp(ctx.platform, ctx.actor, { ...input, address: ctx.clientAddress })),

  changePassword: procedure(EVERY_ROLE, {
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/password', status: 204 },
    summary: 'Change the password and end every other session',
    errors: ['invalid_credentials', 'step_up_required', 'conflict'],
    details: { conflict: 'The password was changed meanwhile.' },
  })
    .input(changePasswordInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      changePassword(ctx.platform, ctx.actor, {
        currentPassword: input.current_password,
        newPassword: input.new_password,
        address: ctx.clientAddress,
      }),
    ),
})

export const usersRouter = router({
  notifications: procedure(EVERY_ROLE, {
    rest: { method: 'GET', path: '/me/notifications' },
    summary: 'Which events are notified by e-mail',
  })
    .input(noInput)
    .output(notifications)
    .query(({ ctx }) => readNotifications(ctx.platform, ctx.actor)),

  updateNotifications: procedure(EVERY_ROLE, {
    rest: { method: 'PATCH', path: '/me/notifications' },
    summary: 'Turn e-mails about events on or off',
    description: 'E-mails about the account itself, such as a changed password, cannot be turned off.',
  })
    .input(updateNotificationsInput)
    .output(notifications)
    .mutation(({ ctx, input }) => updateNotifications(ctx.platform, ctx.actor, input)),

  me: procedure(EVERY_ROLE, {
    rest: { method: 'GET', path: '/me' },
    summary: 'The account that calls',
  })
    .input(noInput)
    .output(user)
    .query(async ({ ctx }) => profileWire(ctx.platform, await profileOf(ctx.platform, ctx.actor.userId))),

  updateMe: procedure(EVERY_ROLE, {
    limit: 'with_password',
    rest: { method: 'PATCH', path: '/me' },
    summary: 'Change the display name, where payouts go, or what invoices are paid from',
    description:
      "A creator's first payout destination takes effect immediately. Replacing it needs the current password, is reviewed by an operator, and takes effect after 24 hours. A merchant's billing account takes effect immediately; replacing it needs the current password and is reviewed too. With a second factor on, both need `POST /auth/step-up` first.",
    errors: ['invalid_credentials', 'step_up_required', 'email_not_verified', 'conflict'],
    details: { conflict: 'The account changed meanwhile. Log in again.' },
  })
    .input(updateMeInput)
    .output(user)
    .mutation(async ({ ctx, input }) => {
      const profile = await updateProfile(ctx.platform, ctx.actor.userId, {
        displayName: input.display_name,
        destination: input.payout_destination,
        billingAccount: input.billing_account,
        currentPassword: input.current_password,
        sessionId: ctx.actor.sessionId,
        address: ctx.clientAddress,
      })
      return profileWire(ctx.platform, profile)
    }),
})

/** What admins decide about accounts. */
export const suspensionProcedures = {
  suspendUser: procedure(['admin'], {
    rest: { method: 'POST', path: '/admin/users/:id/suspend' },
    summary: 'Suspend a user',
    description:
      'Ends all their sessions. A merchant: offers leave the list, links respond with 410, sales are rejected. A creator: links lose their tracking reference, sales are rejected, payouts wait. Repeating it changes nothing.',
    errors: ['not_found', 'conflict'],
    details: { conflict: 'The last active admin cannot be suspended.' },
  })
    .input(suspensionInput)
    .output(user)
    .mutation(async ({ ctx, input }) =>
      wireUser(await suspendUser(ctx.platform, changeOf(input, ctx.actor.userId))),
    ),

  reinstateUser: procedure(['admin'], {
    rest: { method: 'POST', path: '/admin/users/:id/reinstate' },
    summary: 'Reinstate a user',
    description: 'The user must log in again. Repeating it changes nothing.',
    errors: ['not_found'],
  })
    .input(suspensionInput)
    .output(user)
    .mutation(async ({ ctx, input }) =>
      wireUser(await reinstateUser(ctx.platform, changeOf(input, ctx.actor.userId))),
    ),
}

function changeOf(input: { id: string; reason?: string | undefined }, actor: string) {
  return { userId: input.id, actor, reason: input.reason ?? null }
}
