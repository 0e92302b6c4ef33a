import type { z } from 'zod'
import { percentToBasisPoints } from '../../shared/rates.ts'
import { vetOfferInput } from '../../shared/schemas/admin.ts'
import { idInput } from '../../shared/schemas/common.ts'
import {
  createOfferInput,
  listOffersInput,
  offer,
  offerCategories,
  offerPage,
  setOfferStatusInput,
  updateOfferInput,
} from '../../shared/schemas/offers.ts'
import { noInput } from '../../shared/schemas/users.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure, publicProcedure, router, syncInput } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { readReplica } from '../platform/replica-reads.ts'
import {
  createOffer,
  DRAFT_QUOTA,
  getOffer,
  listCategories,
  listOffers,
  PUBLIC_OFFERS,
  RATE_UNVETTED,
  setOfferStatus,
  updateOffer,
  vetOffer,
  wireOffer,
} from './offers.service.ts'

export const offersRouter = router({
  list: publicProcedure({
    rest: { method: 'GET', path: '/offers', shared: PUBLIC_OFFERS, ignoresUnknownQuery: 'noise' },
    summary: 'Browse live offers',
    description: "With `mine=true` and a merchant's token: own offers in every status, filtered by `status`.",
    acceptsToken: true,
    errors: ['unauthenticated', 'forbidden'],
    answers: offerPage,
  })
    .input(syncInput(listOffersInput))
    .query(async ({ ctx, input }): Promise<z.output<typeof offerPage>> => {
      const commission_min = rateOrNone(input.commission_min)
      const commission_max = rateOrNone(input.commission_max)
      const paid_rate_min = rateOrNone(input.paid_rate_min)
      const query = { ...input, commission_min, commission_max, paid_rate_min }
      const read = (platform: Platform) => listOffers(platform, ctx.actor, query)
      return mapPage(await (ctx.actor ? read(ctx.platform) : readReplica(ctx.platform, read)), wireOffer)
    }),

  categories: publicProcedure({
    rest: { method: 'GET', path: '/categories', shared: PUBLIC_OFFERS },
    summary: 'List the categories and niches of live offers',
    description: 'With the number of offers of each. Use them as `category` and `niche` of `GET /offers`.',
  })
    .input(noInput)
    .output(offerCategories)
    .query(async ({ ctx }) => ({ items: await readReplica(ctx.platform, listCategories) })),

  get: publicProcedure({
    rest: { method: 'GET', path: '/offers/:id', shared: PUBLIC_OFFERS, ignoresUnknownQuery: 'all' },
    summary: 'Get an offer',
    description: 'Live offers are public; all others are visible to their merchant and to admins.',
    acceptsToken: true,
    errors: ['not_found'],
  })
    .input(idInput)
    .output(offer)
    .query(async ({ ctx, input }) => {
      const read = (platform: Platform) => getOffer(platform, ctx.actor, input.id)
      return wireOffer(await (ctx.actor ? read(ctx.platform) : readReplica(ctx.platform, read)))
    }),

  create: procedure(['merchant'], {
    rest: { method: 'POST', path: '/offers', status: 201 },
    creates: true,
    summary: 'Create an offer as a draft',
    errors: ['quota_exceeded'],
    details: { quota_exceeded: DRAFT_QUOTA.detail },
  })
    .input(createOfferInput)
    .output(offer)
    .mutation(async ({ ctx, input }) => {
      const fields = { ...input, commission_rate: basisPointsOf(input.commission_rate) }
      return wireOffer(await createOffer(ctx.platform, ctx.actor.userId, fields))
    }),

  update: procedure(['merchant'], {
    rest: { method: 'PATCH', path: '/offers/:id' },
    summary: 'Edit an offer',
    description:
      'commission_rate, attribution_window_days and product_ids apply to later approvals only: a link keeps the terms of its approval.',
    errors: ['not_found', 'conflict', 'vetting_required'],
    details: {
      conflict: 'An ended offer cannot be edited.',
      vetting_required: RATE_UNVETTED,
    },
  })
    .input(updateOfferInput)
    .output(offer)
    .mutation(async ({ ctx, input }) => {
      const { id, ...rest } = input
      const fields = { ...rest, commission_rate: rateOrNone(rest.commission_rate) }
      return wireOffer(await updateOffer(ctx.platform, ctx.actor.userId, id, fields))
    }),

  setStatus: procedure(['merchant'], {
    rest: { method: 'PATCH', path: '/offers/:id/status' },
    summary: "Change an offer's status",
    description:
      'draft → live, live → paused, paused → live, live or paused → ended. Going live needs a store, and above the high-commission threshold an approved vetting.',
    errors: ['not_found', 'illegal_transition', 'conflict', 'vetting_required', 'email_not_verified'],
    details: { conflict: 'Connect a store before an offer goes live.' },
  })
    .input(setOfferStatusInput)
    .output(offer)
    .mutation(async ({ ctx, input }) =>
      wireOffer(await setOfferStatus(ctx.platform, ctx.actor.userId, input.id, input.status)),
    ),
})

function basisPointsOf(percent: number): number {
  const rate = percentToBasisPoints(percent)
  if (rate === null) throw new Error(`the schema accepted ${percent} %`)
  return rate
}

function rateOrNone(percent: number | undefined): number | undefined {
  return percent === undefined ? undefined : basisPointsOf(percent)
}

/** What admins decide about offers. */
export const vettingProcedures = {
  vetOffer: procedure(['admin'], {
    rest: { method: 'POST', path: '/admin/offers/:id/vet' },
    summary: 'Approve or reject an offer',
    description:
      'An approval applies to the present rate and lower ones. A rejection pauses a live offer; above the high-commission threshold it applies to the present rate and higher ones, otherwise to every rate until an admin approves. With `commission_rate`, the decision is refused if the offer has another rate now. Repeating it changes nothing; with another reason it is refused with `already_decided`.',
    errors: ['not_found', 'conflict', 'already_decided'],
    details: {
      conflict: "The offer's commission rate is now 15 %.",
      already_decided: 'This offer is already approved, with another reason.',
    },
  })
    .input(vetOfferInput)
    .output(offer)
    .mutation(async ({ ctx, input }) => {
      const { id, decision, reason, commission_rate: rate } = input
      const vetted = await vetOffer(ctx.platform, {
        offerId: id,
        actor: ctx.actor.userId,
        decision,
        reason: reason ?? null,
        commissionRate: rateOrNone(rate),
      })
      return wireOffer(vetted)
    }),
}
