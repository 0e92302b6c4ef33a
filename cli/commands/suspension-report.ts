import type { SuspensionPreview } from '../../server/reports/operator-status.service.ts'
import { displayMoney, many, sumText } from '../terminal/output.ts'

/** What a suspension will do, one sentence a line. */
export function suspensionLines({ sessions, apiKeys, creator, merchant }: SuspensionPreview): string[] {
  const applications = (creator ?? merchant)?.pendingApplications ?? 0
  const waiting = applications > 0 ? [`${many(applications, 'pending application')} will stay.`] : []
  return [
    sessions === 0 ? 'No session is open.' : `${many(sessions, 'session')} will end.`,
    ...(apiKeys === 0 ? [] : [`${many(apiKeys, 'API key')} will end.`]),
    ...(creator
      ? [
          `${many(creator.links, 'link')} will go on leading to the shop and earn nothing more; orders of earlier clicks are rejected.`,
          ...waiting,
          `Payouts not sent yet, which will wait: ${sumText(creator.payoutsPending)}.`,
          `Payouts already sent, which will run on: ${sumText(creator.payoutsSubmitted)}.`,
          `The balance stays: ${displayMoney(creator.balance.released)} released, ${displayMoney(creator.balance.pending)} pending.`,
        ]
      : []),
    ...(merchant
      ? [
          `${many(merchant.liveOffers, 'live offer')} will leave the catalogue.`,
          `${many(merchant.links, 'link')} to their offers will answer 410; their stores' orders (${many(merchant.stores, 'store')}) are rejected.`,
          ...waiting,
          `Open cycles, which will still close and be invoiced: ${sumText(merchant.openCycles)}.`,
          `Closed cycles, which stay to be paid: ${sumText(merchant.unpaidCycles)}.`,
        ]
      : []),
  ]
}
