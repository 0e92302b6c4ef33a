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
import { readReason } from '../arguments.ts'
import type { PageOptions } from '../command.ts'
import { confirm, prepared, reads } from '../context.ts'
import { wrongUsage } from '../failures.ts'
import { userIdOf } from '../lists.ts'

interface ListOptions extends PageOptions {
  merchant?: string
  status?: ShownOffer['status']
  vetting?: ShownOffer['vetting']
}

export const list = reads(async ({ platform, out }, options: ListOptions) => {
  const { status = null, vetting = null } = options
  const merchantId = await userIdOf(platform, options.merchant)
  const page = await pageById(options, (request) =>
    listEveryOffer(platform, { merchantId, status, vetting, ...request }),
  )
  out.showPage(page, {
    columns: [
      { title: 'Title', flexible: true, cell: (offer) => offer.title },
      { title: 'Merchant', flexible: true, cell: (offer) => offer.merchant.display_name },
      { title: 'Rate', right: true, cell: (offer) => `${offer.commission_rate / 100} %` },
      { title: 'Status', cell: (offer) => offer.status },
      { title: 'Vetting', cell: (offer) => offer.vetting },
      out.moment('Made', (offer) => offer.created_at),
      { title: 'Id', cell: (offer) => offer.id },
    ],
    wire: wireOffer,
  })
})

interface VetOptions {
  approve?: boolean
  reject?: boolean
  reason?: string
  rate?: number
}

export const vet = prepared((offerId: string, options: VetOptions) => {
  if (Boolean(options.approve) === Boolean(options.reject)) {
    throw wrongUsage('Pass --approve or --reject.')
  }
  const decision = options.approve ? 'approve' : 'reject'
  const reason = readReason(options.reason)
  return async (context) => {
    const { platform, out } = context
    const found = (await offerRecords(platform, platform.database.reader, [offerId])).get(offerId)
    if (!found) throw offerNotFound()
    const commissionRate = options.rate ?? found.commission_rate
    const verb = options.approve ? 'Approve' : 'Reject'
    await confirm(context, `${verb} "${found.title}" at ${commissionRate / 100} % commission?`)
    const vetted = await vetOffer(platform, {
      offerId,
      actor: OPERATOR,
      decision,
      reason,
      commissionRate,
    })
    const paused = vetted.status === 'paused' ? ', and paused' : ''
    out.show(wireOffer(vetted), () => [
      `"${vetted.title}" is ${vetted.vetting} at ${vetted.commission_rate / 100} %${paused}.`,
    ])
  }
})
