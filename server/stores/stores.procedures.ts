import { z } from 'zod'
import {
  connectStoreInput,
  listStoresInput,
  removeStoreInput,
  rotateSecretInput,
  type Store,
  store,
  storePage,
} from '../../shared/schemas/stores.ts'
import { toWireTime } from '../platform/clock.ts'
import { mapPage } from '../platform/page.ts'
import { procedure, router } from '../platform/procedure.ts'
import { connectStore, listStores, removeStore, rotateSecret, type StoreRow } from './stores.service.ts'

export const storesRouter = router({
  connect: procedure(['merchant'], {
    rest: { method: 'POST', path: '/stores', status: 201 },
    summary: 'Connect a store that reports sales',
    description: 'A store that the same merchant removed earlier comes back under its former id.',
    errors: ['store_taken', 'secret_taken'],
  })
    .input(connectStoreInput)
    .output(store)
    .mutation(async ({ ctx, input }) => wireStore(await connectStore(ctx.platform, ctx.actor.userId, input))),

  list: procedure(['merchant'], {
    rest: { method: 'GET', path: '/stores' },
    summary: 'List own stores',
  })
    .input(listStoresInput)
    .output(storePage)
    .query(async ({ ctx, input }) =>
      mapPage(await listStores(ctx.platform, ctx.actor.userId, input), wireStore),
    ),

  rotateSecret: procedure(['merchant'], {
    rest: { method: 'PATCH', path: '/stores/:id' },
    summary: "Replace a store's webhook secret",
    description:
      'The former secret stays valid for 24 hours, since the store goes on signing with it for a while.',
    errors: ['not_found', 'secret_taken'],
  })
    .input(rotateSecretInput)
    .output(store)
    .mutation(async ({ ctx, input }) =>
      wireStore(await rotateSecret(ctx.platform, ctx.actor.userId, input.id, input.webhook_secret)),
    ),

  remove: procedure(['merchant'], {
    rest: { method: 'DELETE', path: '/stores/:id', status: 204 },
    summary: 'Remove a store',
    description: 'It can report no further sales; the ones that it has reported stay.',
    errors: ['not_found'],
  })
    .input(removeStoreInput)
    .output(z.void())
    .mutation(({ ctx, input }) => removeStore(ctx.platform, ctx.actor.userId, input.id)),
})

function wireStore(row: StoreRow): Store {
  return {
    id: row.id,
    platform: 'shopify',
    shop_domain: row.shop_domain,
    created_at: toWireTime(row.created_at),
  }
}
