import { z } from 'zod'
import { listUsersInput, suspensionInput, userPage } from '../../shared/schemas/admin.ts'
import { idInput, listInput } from '../../shared/schemas/common.ts'
import { notifications, updateNotificationsInput } from '../../shared/schemas/notifications.ts'
import {
  changePasswordInput,
  confirmPasswordResetInput,
  noInput,
  passwordResetRequested,
  recoveryCodes,
  requestPasswordResetInput,
  secondFactorInput,
  sessionList,
  stepUpInput,
  totpEnrollment,
  user,
  verifyEmailInput,
} from '../../shared/schemas/users.ts'
import {
  readNotifications,
  updateNotifications,
} from '../notifications/channels/mail/notifications.service.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure, publicProcedure, sessionProcedure } from '../platform/api/procedure.ts'
import {
  requestPasswordReset,
  resendVerification,
  resetPassword,
  verifyEmail,
} from './account-recovery.service.ts'
import { changePassword, stepUp } from './credentials.service.ts'
import {
  CODE_WRONG,
  confirmTotp,
  disableTotp,
  FACTOR_OFF,
  renewRecoveryCodes,
  startTotp,
} from './second-factor.service.ts'
import { endOtherSessions, endOwnSession, listSessions, logout } from './sessions.service.ts'
import { wireSession, wireUser } from './user-wire.ts'
import { listUsers, reinstateUser, suspendUser } from './users.service.ts'

const EVERY_ROLE = ['merchant', 'creator', 'admin'] as const

export const authProcedures = {
  requestPasswordReset: publicProcedure({
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/password-reset', status: 202 },
    summary: 'Mail a link to reset the password',
    description:
      'Answers alike whether there is an account or not. The link is valid for one hour, works once, and ends earlier ones. At most 5 an hour are mailed to one address.',
  })
    .input(requestPasswordResetInput)
    .output(passwordResetRequested)
    .mutation(({ ctx, input }) => {
      requestPasswordReset(ctx.platform, input.email)
      return { accepted: true as const }
    }),

  resetPassword: publicProcedure({
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/password-reset/confirm', status: 204 },
    summary: 'Set a new password with the token of a mailed link',
    description: 'Ends every session and API key, and verifies the e-mail address. A second factor stays on.',
  })
    .input(confirmPasswordResetInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      resetPassword(ctx.platform, { token: input.token, newPassword: input.new_password }),
    ),

  verifyEmail: publicProcedure({
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/verify-email', status: 204 },
    summary: 'Verify an e-mail address with the token of a mailed link',
  })
    .input(verifyEmailInput)
    .output(z.void())
    .mutation(({ ctx, input }) => verifyEmail(ctx.platform, input.token)),

  resendVerification: sessionProcedure(EVERY_ROLE, {
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/verify-email/resend', status: 204 },
    summary: 'Mail the link that verifies the e-mail address again',
    description: 'Changes nothing once the address is verified.',
    errors: ['conflict', 'rate_limited'],
    details: { conflict: 'This service sends no e-mail. Contact its operator.' },
  })
    .input(noInput)
    .output(z.void())
    .mutation(({ ctx }) => resendVerification(ctx.platform, ctx.actor.userId)),

  logout: sessionProcedure(EVERY_ROLE, {
    rest: { method: 'POST', path: '/auth/logout', status: 204 },
    summary: 'End this session',
    duringSetup: true,
  })
    .input(noInput)
    .output(z.void())
    .mutation(async ({ ctx }) => {
      await logout(ctx.platform, ctx.actor)
      ctx.sessionCookie?.clear()
    }),

  listSessions: sessionProcedure(EVERY_ROLE, {
    rest: { method: 'GET', path: '/auth/sessions' },
    summary: "The account's open sessions",
  })
    .input(listInput)
    .output(sessionList)
    .query(async ({ ctx, input }) =>
      mapPage(await listSessions(ctx.platform, ctx.actor.userId, input), (record) => ({
        ...wireSession(record),
        current: record.id === ctx.actor.sessionId,
      })),
    ),

  endSession: sessionProcedure(EVERY_ROLE, {
    rest: { method: 'DELETE', path: '/auth/sessions/:id', status: 204 },
    summary: "End one of the account's sessions",
    errors: ['not_found'],
  })
    .input(idInput)
    .output(z.void())
    .mutation(({ ctx, input }) => endOwnSession(ctx.platform, ctx.actor, input.id)),

  endOtherSessions: sessionProcedure(EVERY_ROLE, {
    rest: { method: 'DELETE', path: '/auth/sessions', status: 204 },
    summary: 'End every other session',
  })
    .input(noInput)
    .output(z.void())
    .mutation(({ ctx }) => endOtherSessions(ctx.platform, ctx.actor)),

  startTotp: sessionProcedure(EVERY_ROLE, {
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
      const { secret, otpauthUrl } = await startTotp(ctx.platform, ctx.actor.userId)
      return { secret, otpauth_url: otpauthUrl }
    }),

  confirmTotp: sessionProcedure(EVERY_ROLE, {
    rest: { method: 'POST', path: '/auth/totp/confirm' },
    summary: 'Turn the second factor on',
    duringSetup: true,
    description: 'From then on, logging in needs a code of the authenticator app or a recovery code.',
    errors: ['invalid_credentials', 'conflict'],
    details: { conflict: 'Start with POST /auth/totp.', invalid_credentials: CODE_WRONG },
  })
    .input(secondFactorInput)
    .output(recoveryCodes)
    .mutation(async ({ ctx: { platform, actor }, input }) => ({
      recovery_codes: await confirmTotp(platform, actor.userId, input.code, actor.userId, actor.sessionId),
    })),

  renewRecoveryCodes: sessionProcedure(EVERY_ROLE, {
    rest: { method: 'POST', path: '/auth/totp/recovery-codes' },
    summary: 'Replace the recovery codes',
    description:
      'Needs a code of the authenticator app or a recovery code. Answers ten new codes once; the former ones work no more.',
    errors: ['invalid_credentials', 'not_found'],
    details: { invalid_credentials: CODE_WRONG, not_found: FACTOR_OFF },
  })
    .input(secondFactorInput)
    .output(recoveryCodes)
    .mutation(async ({ ctx, input }) => ({
      recovery_codes: await renewRecoveryCodes(ctx.platform, ctx.actor, {
        code: input.code,
        address: ctx.clientAddress,
      }),
    })),

  disableTotp: sessionProcedure(EVERY_ROLE, {
    rest: {
      method: 'POST',
      path: '/auth/totp/disable',
      status: 204,
      also: {
        method: 'DELETE',
        path: '/auth/totp',
        takesBody: true,
      },
    },
    summary: 'Turn the second factor off',
    description:
      'Needs a step-up in the last 10 minutes, and a code: the same one, or another. `DELETE /auth/totp` with the same body does this too; some clients drop the body of a DELETE.',
    errors: ['invalid_credentials', 'step_up_required', 'not_found', 'conflict'],
    details: {
      conflict: 'Admins need their second factor. An operator can reset it.',
      invalid_credentials: CODE_WRONG,
      not_found: FACTOR_OFF,
    },
  })
    .input(secondFactorInput)
    .output(z.void())
    .mutation(({ ctx, input }) =>
      disableTotp(ctx.platform, ctx.actor, { code: input.code, address: ctx.clientAddress }),
    ),

  stepUp: sessionProcedure(EVERY_ROLE, {
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/step-up', status: 204 },
    summary: 'Confirm password and code again, for 10 minutes',
    description:
      'With a second factor on, changing a payout destination, a billing account or the password, and turning the second factor off, need it. A new API key needs it in any case.',
    errors: ['invalid_credentials', 'second_factor_required'],
    details: { invalid_credentials: 'The password is wrong.' },
  })
    .input(stepUpInput)
    .output(z.void())
    .mutation(({ ctx, input }) => stepUp(ctx.platform, ctx.actor, { ...input, address: ctx.clientAddress })),

  changePassword: sessionProcedure(EVERY_ROLE, {
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/password', status: 204 },
    summary: 'Change the password and end every other session',
    errors: ['invalid_credentials', 'step_up_required', 'conflict'],
    details: {
      conflict: 'The password was changed meanwhile.',
      invalid_credentials: 'The current password is wrong.',
    },
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
}

export const notificationProcedures = {
  notifications: procedure(EVERY_ROLE, {
    rest: { method: 'GET', path: '/me/notifications' },
    summary: 'Which events are notified by e-mail',
  })
    .input(noInput)
    .output(notifications)
    .query(({ ctx }) => readNotifications(ctx.platform, ctx.actor)),

  updateNotifications: sessionProcedure(EVERY_ROLE, {
    rest: { method: 'PATCH', path: '/me/notifications' },
    summary: 'Turn e-mails about events on or off',
    description: 'E-mails about the account itself, such as a changed password, cannot be turned off.',
  })
    .input(updateNotificationsInput)
    .output(notifications)
    .mutation(({ ctx, input }) => updateNotifications(ctx.platform, ctx.actor, input)),
}

/** What admins decide about accounts. */
export const suspensionProcedures = {
  listUsers: procedure(['admin'], {
    rest: { method: 'GET', path: '/admin/users' },
    summary: 'List accounts',
    description: 'Newest first, without their balances and bank accounts.',
  })
    .input(listUsersInput)
    .output(userPage)
    .query(async ({ ctx, input }) => mapPage(await listUsers(ctx.platform, input), wireUser)),

  suspendUser: procedure(['admin'], {
    rest: { method: 'POST', path: '/admin/users/:id/suspend' },
    summary: 'Suspend a user',
    description:
      'Ends all their sessions and API keys. A merchant: offers leave the list, links respond with 410, sales are rejected. A creator: links lose their tracking reference, sales are rejected, payouts wait. Repeating it changes nothing.',
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
