import { z } from 'zod'
import { idInput, listInput } from '../../shared/schemas/common.ts'
import { changeStoreInput, connectStoreInput, store, storePage } from '../../shared/schemas/stores.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { makeRoom, removeStore } from './remove-store.service.ts'
import { showStore, showStores } from './store-activity.service.ts'
import {
  connectStore,
  fullDomainDetail,
  getStore,
  listStores,
  moveStore,
  rotateSecret,
} from './stores.service.ts'

export const storesRouter = router({
  connect: procedure(['merchant'], {
    rest: { method: 'POST', path: '/stores', status: 201 },
    creates: true,
    summary: 'Connect a store that reports sales',
    description:
      'A store that the same merchant removed earlier comes back under its former id. Several merchants may claim one shop domain; each delivery belongs to the claim whose secret verifies it. Refused with `conflict` when an operator released your claim on the domain, and with `quota_exceeded` when the domain has 10 claims: one that has received no signed delivery for a day after it was made then makes room for yours; a test notification proves yours.',
    errors: ['store_taken', 'secret_taken', 'quota_exceeded', 'conflict'],
    details: {
      quota_exceeded: 'At most 10 stores per account. Remove one before you connect another.',
      conflict:
        'An operator released your claim on chenab-lawn.myshopify.com. Ask the operator to allow it again.',
    },
  })
    .input(connectStoreInput)
    .output(store)
    .mutation(async ({ ctx, input }) =>
      showStore(ctx.platform, await connectStore(ctx.platform, ctx.actor.userId, input, makeRoom)),
    ),

  list: procedure(['merchant'], {
    rest: { method: 'GET', path: '/stores' },
    summary: 'List own stores',
  })
    .input(listInput)
    .output(storePage)
    .query(async ({ ctx, input }) => {
      const { items, ...page } = await listStores(ctx.platform, ctx.actor.userId, input)
      return { ...page, items: await showStores(ctx.platform, items) }
    }),

  get: procedure(['merchant'], {
    rest: { method: 'GET', path: '/stores/:id' },
    summary: 'Get one of your own stores',
    errors: ['not_found'],
  })
    .input(idInput)
    .output(store)
    .query(async ({ ctx, input }) =>
      showStore(ctx.platform, await getStore(ctx.platform, ctx.actor.userId, input.id)),
    ),

  rotateSecret: procedure(['merchant'], {
    rest: { method: 'PATCH', path: '/stores/:id' },
    summary: "Replace a store's webhook secret, or move it to the shop's new name",
    description:
      'The former secret stays valid for 24 hours, since the store goes on signing with it for a while. With `revoke_former` it ends at once. `shop_domain` is for a shop that changed its `.myshopify.com` name: secret and sales stay, deliveries with the former name are still accepted, and an order that was reported under the former name does not count again.',
    errors: ['not_found', 'secret_taken', 'store_taken', 'quota_exceeded', 'conflict'],
    details: {
      quota_exceeded: fullDomainDetail('chenab-lawn.myshopify.com'),
      conflict:
        'An operator released your claim on chenab-lawn.myshopify.com. Ask the operator to allow it again.',
    },
  })
    .input(changeStoreInput)
    .output(store)
    .mutation(async ({ ctx: { platform, actor }, input }) => {
      const { id, shop_domain, webhook_secret: secret, revoke_former: revokeFormer } = input
      if (shop_domain !== undefined) {
        const change = { domain: shop_domain, secret, revokeFormer }
        await moveStore(platform, actor.userId, id, change, makeRoom)
      } else if (secret !== undefined) {
        await rotateSecret(platform, actor.userId, id, { secret, revokeFormer })
      }
      return showStore(platform, await getStore(platform, actor.userId, id))
    }),

  remove: procedure(['merchant'], {
    rest: {
      method: 'DELETE',
      path: '/stores/:id',
      status: 204,
      headers: {
        'X-Offers-Paused': {
          description: 'How many live offers were paused because this was the last store.',
          schema: { type: 'integer' },
          example: 3,
        },
      },
    },
    summary: 'Remove a store',
    description:
      'It can report no further sales; the ones that it has reported stay. Removing your last store pauses your live offers.',
    errors: ['not_found'],
  })
    .input(idInput)
    .output(z.void())
    .mutation(async ({ ctx, input }) => {
      const { offersPaused } = await removeStore(ctx.platform, ctx.actor.userId, input.id)
      if (ctx.answerHeaders) ctx.answerHeaders['x-offers-paused'] = String(offersPaused)
    }),
})
