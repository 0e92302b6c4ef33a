import { z } from 'zod'
import {
  confirmPasswordResetInput,
  noInput,
  passwordResetRequested,
  requestPasswordResetInput,
  verifyEmailInput,
} from '../../shared/schemas/users.ts'
import { procedure, publicProcedure } from '../platform/api/procedure.ts'
import {
  requestPasswordReset,
  resendVerification,
  resetPassword,
  verifyEmail,
} from './account-recovery.service.ts'

/** Part of the router `auth`. */
export const recoveryProcedures = {
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
    description: 'Ends every session, and verifies the e-mail address. A second factor stays on.',
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

  resendVerification: procedure(['merchant', 'creator', 'admin'], {
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
}
