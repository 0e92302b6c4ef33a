import { z } from 'zod'
import { idInput, listInput } from '../../shared/schemas/common.ts'
import { apiKeyList, createApiKeyInput, createdApiKey } from '../../shared/schemas/users.ts'
import { mapPage } from '../platform/api/page.ts'
import { sessionProcedure } from '../platform/api/procedure.ts'
import {
  API_KEY_QUOTA,
  createApiKey,
  deleteApiKey,
  listApiKeys,
  requireKeyMaker,
} from './api-keys.service.ts'
import { wireApiKey } from './user-wire.ts'

const OWNERS = ['merchant', 'creator'] as const

export const apiKeyProcedures = {
  createApiKey: sessionProcedure(
    OWNERS,
    {
      rest: { method: 'POST', path: '/auth/api-keys', status: 201 },
      creates: true,
      summary: 'Create an API key for a program',
      description:
        'The key is shown only here. Needs a step-up in the last 10 minutes, or a log-in while the second factor is off. A key reaches nothing that concerns the safety of the account: password, sessions, second factor, e-mail, bank accounts, API keys. A suspension and a password reset end it, a change of the password does not.',
      errors: ['step_up_required', 'quota_exceeded'],
      details: { quota_exceeded: API_KEY_QUOTA.detail },
    },
    requireKeyMaker,
  )
    .input(createApiKeyInput)
    .output(createdApiKey)
    .mutation(async ({ ctx: { platform, actor }, input: { expires_in_days: expiresInDays, ...given } }) => {
      const { key, ...row } = await createApiKey(platform, actor, { ...given, expiresInDays })
      return { ...wireApiKey(row), key }
    }),

  listApiKeys: sessionProcedure(OWNERS, {
    rest: { method: 'GET', path: '/auth/api-keys' },
    summary: "The account's API keys",
    description: 'Without those that have expired.',
  })
    .input(listInput)
    .output(apiKeyList)
    .query(async ({ ctx, input }) =>
      mapPage(await listApiKeys(ctx.platform, ctx.actor.userId, input), wireApiKey),
    ),

  deleteApiKey: sessionProcedure(OWNERS, {
    rest: { method: 'DELETE', path: '/auth/api-keys/:id', status: 204 },
    summary: 'End an API key',
    errors: ['not_found'],
  })
    .input(idInput)
    .output(z.void())
    .mutation(({ ctx, input }) => deleteApiKey(ctx.platform, ctx.actor.userId, input.id)),
}
