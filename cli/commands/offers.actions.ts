import { OPERATOR } from '../../server/flags/audit.service.ts'
import {
  listEveryOffer,
  offerNotFound,
  offerRecords,
  type ShownOffer,
  vetOffer,
  wireOffer,
} from '../../server/offers/offers.service.ts'
import { pageById } from '../../server/platform/api/page.ts'
import type { PageOptions, ReasonOption } from '../command.ts'
import { confirm, reads, writes } from '../context.ts'
import { userIdOf } from '../lists.ts'

type ListOptions = PageOptions & Partial<Pick<ShownOffer, 'status' | 'vetting'>>

export const list = reads(async ({ platform, out }, options: ListOptions) => {
  const { status = null, vetting = null } = options
  const merchantId = await userIdOf(platform, options.merchant)
  const page = await pageById(options, (request) =>
    listEveryOffer(platform, { merchantId, status, vetting, ...request }),
  )
  out.showPage(page, {
    columns: [
      { title: 'Id', cell: (offer) => offer.id },
      { title: 'Title', flexible: true, cell: (offer) => offer.title },
      { title: 'Rate', right: true, cell: (offer) => `${offer.commission_rate / 100} %` },
      { title: 'Status', cell: (offer) => offer.status },
      { title: 'Vetting', cell: (offer) => offer.vetting },
      { title: 'Merchant', flexible: true, cell: (offer) => offer.merchant.display_name },
      out.moment('Made', (offer) => offer.created_at),
    ],
    wire: wireOffer,
    none: 'No offers.',
  })
})

type VetOptions = ReasonOption & { approve?: boolean; rate?: number }

export const vet = writes(async (context, offerId: string, options: VetOptions) => {
  const { platform, out } = context
  const { approve, reason = null } = options
  const found = (await offerRecords(platform, platform.database.reader, [offerId])).get(offerId)
  if (!found) throw offerNotFound()
  const commissionRate = options.rate ?? found.commission_rate
  const question = `"${found.title}" at ${commissionRate / 100} % commission?`
  await confirm(context, `${approve ? 'Approve' : 'Reject'} ${question}`)
  const decision = approve ? 'approve' : 'reject'
  const vetted = await vetOffer(platform, { offerId, actor: OPERATOR, decision, reason, commissionRate })
  const paused = vetted.status === 'paused' ? ', and paused' : ''
  out.show(wireOffer(vetted), () => [
    `"${vetted.title}" is ${vetted.vetting} at ${vetted.commission_rate / 100} %${paused}.`,
  ])
})
