import { z } from 'zod'
import { percentToBasisPoints } from '../../shared/rates.ts'
import {
  application,
  applicationPage,
  applyInput,
  decideApplicationInput,
  listApplicationsInput,
  listOfferApplicationsInput,
} from '../../shared/schemas/applications.ts'
import { idInput } from '../../shared/schemas/common.ts'
import { COUPON_QUOTA } from '../links/coupons.service.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure } from '../platform/api/procedure.ts'
import { OFFER_RATE_UNVETTED } from './application.rule.ts'
import {
  APPLICATION_QUOTA,
  applyToOffer,
  decideOnApplication,
  listApplications,
  listOfferApplications,
  wireApplication,
  withdrawApplication,
} from './applications.service.ts'

/** A plain record, because `router()` refuses the name `apply`, which clients use (decision 12). */
export const applicationsProcedures = {
  apply: procedure(['creator'], {
    rest: { method: 'POST', path: '/offers/:id/applications', status: 201 },
    creates: true,
    summary: 'Apply to an offer',
    description:
      'One pending or approved application for each creator and offer; after a rejection or a withdrawal, the creator may apply again.',
    errors: ['not_found', 'offer_not_live', 'already_applied', 'quota_exceeded', 'email_not_verified'],
    details: { quota_exceeded: APPLICATION_QUOTA.detail },
  })
    .input(applyInput)
    .output(application)
    .mutation(async ({ ctx, input }) => {
      const { id, ...rest } = input
      return wireApplication(ctx.platform, await applyToOffer(ctx.platform, ctx.actor.userId, id, rest))
    }),

  listForOffer: procedure(['merchant'], {
    rest: { method: 'GET', path: '/offers/:id/applications' },
    summary: 'List the applications to an own offer',
    errors: ['not_found'],
  })
    .input(listOfferApplicationsInput)
    .output(applicationPage)
    .query(async ({ ctx, input }) => {
      const { id, ...query } = input
      const page = await listOfferApplications(ctx.platform, ctx.actor.userId, id, query)
      return mapPage(page, (row) => wireApplication(ctx.platform, row))
    }),

  list: procedure(['creator', 'merchant'], {
    rest: { method: 'GET', path: '/applications' },
    summary: 'List own applications, or those to own offers',
  })
    .input(listApplicationsInput)
    .output(applicationPage)
    .query(async ({ ctx, input }) => {
      const { role, userId } = ctx.actor
      const scope = role === 'creator' ? { creatorId: userId } : { merchantId: userId }
      const page = await listApplications(ctx.platform, scope, input)
      return mapPage(page, (row) => wireApplication(ctx.platform, row))
    }),

  decide: procedure(['merchant'], {
    rest: { method: 'PATCH', path: '/applications/:id' },
    summary: 'Approve or reject an application',
    description:
      "An approval creates the creator's affiliate link and locks the offer's present rate, window and product ids. With `commission_rate` the link gets that rate instead; above the high-commission threshold it needs an approved vetting of that rate or a higher one. Repeating a decision changes nothing; with another reason, coupon code or rate it is refused with `already_decided`.",
    errors: [
      'not_found',
      'already_decided',
      'offer_not_live',
      'vetting_required',
      'coupon_taken',
      'quota_exceeded',
    ],
    details: {
      quota_exceeded: COUPON_QUOTA.detail,
      offer_not_live: 'The offer is paused; applications can be approved only while it is live.',
      vetting_required: OFFER_RATE_UNVETTED,
    },
  })
    .input(decideApplicationInput)
    .output(application)
    .mutation(async ({ ctx, input }) => {
      const { id, commission_rate: percent, ...answer } = input
      const commission_rate = percent === undefined ? undefined : (percentToBasisPoints(percent) ?? undefined)
      const row = await decideOnApplication(ctx.platform, ctx.actor.userId, id, {
        ...answer,
        commission_rate,
      })
      return wireApplication(ctx.platform, row)
    }),

  withdraw: procedure(['creator'], {
    rest: { method: 'DELETE', path: '/applications/:id', status: 204 },
    summary: 'Withdraw an own pending application',
    description:
      'The merchant sees it as `withdrawn`. Repeating it changes nothing. You may apply to the offer again.',
    errors: ['not_found', 'already_decided'],
  })
    .input(idInput)
    .output(z.void())
    .mutation(({ ctx, input }) => withdrawApplication(ctx.platform, ctx.actor.userId, input.id)),
}
