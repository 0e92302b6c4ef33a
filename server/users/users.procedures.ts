import { z } from 'zod'
import { CURRENCY, formatMoney } from '../../shared/money.ts'
import {
  changePasswordInput,
  loginInput,
  noInput,
  registerInput,
  session,
  type UserWire,
  updateMeInput,
  user,
} from '../../shared/schemas/users.ts'
import { procedure, publicProcedure, router } from '../platform/api/procedure.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import { changePassword, login, logout, type OpenedSession, register } from './credentials.service.ts'
import { type Profile, profileOf, updateProfile } from './profile.service.ts'
import { wireDestinations, wireUser } from './user-wire.ts'

const EVERY_ROLE = ['merchant', 'creator', 'admin'] as const

function profileWire(
  platform: Platform,
  { user, destinations, balance, account, billingAccount }: Profile,
): UserWire {
  return {
    ...wireUser(user),
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
  }
}

export const authRouter = router({
  register: publicProcedure({
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
      })
      return sessionWire(ctx.platform, opened)
    }),

  login: publicProcedure({
    rest: { method: 'POST', path: '/auth/login' },
    summary: 'Log in',
    description: 'An unknown e-mail and a wrong password are answered alike. The token is valid for 30 days.',
    errors: ['invalid_credentials', 'account_suspended'],
  })
    .input(loginInput)
    .output(session)
    .mutation(async ({ ctx, input }) =>
      sessionWire(ctx.platform, await login(ctx.platform, input.email, input.password, ctx.clientAddress)),
    ),

  logout: procedure(EVERY_ROLE, {
    rest: { method: 'POST', path: '/auth/logout', status: 204 },
    summary: 'End this session',
  })
    .input(noInput)
    .output(z.void())
    .mutation(({ ctx }) => logout(ctx.platform, ctx.actor)),

  changePassword: procedure(EVERY_ROLE, {
    rest: { method: 'POST', path: '/auth/password', status: 204 },
    summary: 'Change the password and end every other session',
    errors: ['invalid_credentials', 'conflict'],
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
  me: procedure(EVERY_ROLE, {
    rest: { method: 'GET', path: '/me' },
    summary: 'The account that calls',
  })
    .input(noInput)
    .output(user)
    .query(async ({ ctx }) => profileWire(ctx.platform, await profileOf(ctx.platform, ctx.actor.userId))),

  updateMe: procedure(EVERY_ROLE, {
    rest: { method: 'PATCH', path: '/me' },
    summary: 'Change the display name, where payouts go, or what invoices are paid from',
    description:
      "A creator's first payout destination takes effect immediately. Replacing it needs the current password, is reviewed by an operator, and takes effect after 24 hours. A merchant's billing account takes effect immediately; replacing it needs the current password and is reviewed too.",
    errors: ['invalid_credentials', 'conflict'],
  })
    .input(updateMeInput)
    .output(user)
    .mutation(async ({ ctx, input }) => {
      const profile = await updateProfile(ctx.platform, ctx.actor.userId, {
        displayName: input.display_name,
        destination: input.payout_destination,
        billingAccount: input.billing_account,
        currentPassword: input.current_password,
        address: ctx.clientAddress,
      })
      return profileWire(ctx.platform, profile)
    }),
})
