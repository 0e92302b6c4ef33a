import { percentToBasisPoints } from '../../shared/rates.ts'
import {
  type FlagWire,
  flag,
  flagPage,
  listFlaggedInput,
  resolveFlagInput,
  suspensionInput,
  vetOfferInput,
} from '../../shared/schemas/admin.ts'
import { offer } from '../../shared/schemas/offers.ts'
import { user } from '../../shared/schemas/users.ts'
import { wireOffer } from '../offers/offer-wire.ts'
import { vetOffer } from '../offers/offers.service.ts'
import { mapPage } from '../platform/api/page.ts'
import { procedure, router } from '../platform/api/procedure.ts'
import { isoTime } from '../platform/clock.ts'
import { wireUser } from '../users/user-wire.ts'
import { reinstateUser, suspendUser } from '../users/users.service.ts'
import { type FlagRow, listFlags, resolveFlag } from './flags.service.ts'

export const adminRouter = router({
  listFlagged: procedure(['admin'], {
    rest: { method: 'GET', path: '/admin/flagged' },
    summary: 'The fraud and moderation queue',
    description:
      'Newest first; open flags unless `status` is `resolved`. At most one flag of a kind and subject is open; later events are added to its evidence.',
  })
    .input(listFlaggedInput)
    .output(flagPage)
    .query(async ({ ctx, input }) => mapPage(await listFlags(ctx.platform, input), flagWire)),

  resolveFlag: procedure(['admin'], {
    rest: { method: 'POST', path: '/admin/flagged/:id/resolve' },
    summary: 'Resolve a flag',
    description:
      'Records what was found and done. Repeating the note changes nothing; another note is refused with `already_decided`.',
    errors: ['not_found', 'already_decided'],
  })
    .input(resolveFlagInput)
    .output(flag)
    .mutation(async ({ ctx, input }) =>
      flagWire(
        await resolveFlag(ctx.platform, { flagId: input.id, note: input.note, actor: ctx.actor.userId }),
      ),
    ),

  vetOffer: procedure(['admin'], {
    rest: { method: 'POST', path: '/admin/offers/:id/vet' },
    summary: 'Approve or reject an offer',
    description:
      'An approval applies to the present rate and lower ones. A rejection pauses a live offer; above the high-commission threshold it applies to the present rate and higher ones, otherwise to every rate until an admin approves. With `commission_rate`, the decision is refused if the offer has another rate now. Repeating it changes nothing; with another reason it is refused with `already_decided`.',
    errors: ['not_found', 'conflict', 'already_decided'],
    details: { conflict: "The offer's commission rate is now 15 %." },
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
        commissionRate: rate === undefined ? undefined : (percentToBasisPoints(rate) ?? undefined),
      })
      return wireOffer(vetted)
    }),

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
})

function changeOf(input: { id: string; reason?: string | undefined }, actor: string) {
  return { userId: input.id, actor, reason: input.reason ?? null }
}

function flagWire(row: FlagRow): FlagWire {
  return {
    id: row.id,
    kind: row.kind as FlagWire['kind'],
    severity: row.severity,
    subject_type: row.subject_type,
    subject_id: row.subject_id,
    summary: row.summary,
    evidence: JSON.parse(row.evidence),
    status: row.status,
    note: row.note,
    created_at: isoTime(row.created_at),
    resolved_at: row.resolved_at === null ? null : isoTime(row.resolved_at),
  }
}
