import {
  loginInput,
  noInput,
  registerInput,
  session,
  updateMeInput,
  user,
} from '../../shared/schemas/users.ts'
import {
  type Actor,
  procedure,
  publicProcedure,
  type RequestContext,
  sessionProcedure,
} from '../platform/api/procedure.ts'
import { isoTime } from '../platform/clock.ts'
import { login, register } from '../users/credentials.service.ts'
import { logout, type OpenedSession } from '../users/sessions.service.ts'
import { profileOf, updateProfile } from './profile.service.ts'

const EVERY_ROLE = ['merchant', 'creator', 'admin'] as const

/** What opens a session, and answers the account with it. */
export const sessionProcedures = {
  register: publicProcedure({
    limit: 'auth',
    rest: { method: 'POST', path: '/auth/register', status: 201 },
    summary: 'Open an account as a merchant or a creator, and log in',
    errors: ['email_taken'],
  })
    .input(registerInput)
    .output(session)
    .mutation(async ({ ctx, input }) => {
      const { display_name: displayName, ...account } = input
      const { platform, clientAddress: address, agent } = ctx
      return sessionWire(ctx, await register(platform, { ...account, displayName, address, agent }))
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
      return sessionWire(ctx, await login(platform, email, password, clientAddress, { agent, code }))
    }),
}

/** What an account sees and changes of itself. */
export const profileProcedures = {
  me: procedure(EVERY_ROLE, {
    rest: { method: 'GET', path: '/me' },
    summary: 'The account that calls',
  })
    .input(noInput)
    .output(user)
    .query(({ ctx }) => profileOf(ctx.platform, ctx.actor.userId)),

  updateMe: sessionProcedure(EVERY_ROLE, {
    limit: 'with_password',
    rest: { method: 'PATCH', path: '/me' },
    summary: 'Change the display name, where payouts go, or what invoices are paid from',
    description:
      "A creator's first payout destination takes effect immediately; once there are earnings it needs the current password, or a log-in of the last 10 minutes. Replacing it needs the current password, is reviewed by an operator, and takes effect after 24 hours. A merchant's billing account takes effect immediately; replacing it needs the current password and is reviewed too. With a second factor on, both need `POST /auth/step-up` first.",
    errors: ['invalid_credentials', 'step_up_required', 'email_not_verified', 'conflict'],
    details: {
      conflict: 'The account changed meanwhile. Log in again.',
      invalid_credentials: 'The current password is wrong.',
    },
  })
    .input(updateMeInput)
    .output(user)
    .mutation(({ ctx, input }) =>
      updateProfile(ctx.platform, ctx.actor.userId, {
        displayName: input.display_name,
        destination: input.payout_destination,
        billingAccount: input.billing_account,
        currentPassword: input.current_password,
        sessionId: ctx.actor.sessionId,
        address: ctx.clientAddress,
      }),
    ),
}

/** With a cookie the token is in no answer, and the session that it replaces ends: no one has its token then. */
async function sessionWire(
  { platform, actor, sessionCookie }: RequestContext & { actor: Actor | null },
  { userId, token, expiresAt, setupOnly }: OpenedSession,
) {
  const user = await profileOf(platform, userId)
  if (sessionCookie && actor?.sessionId) await logout(platform, { ...actor, sessionId: actor.sessionId })
  sessionCookie?.keep(token, expiresAt)
  return {
    user,
    token: sessionCookie ? '' : token,
    expires_at: isoTime(expiresAt),
    ...(setupOnly && { second_factor_setup_required: true }),
  }
}
