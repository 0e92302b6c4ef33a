import type { Role } from '../../shared/schemas/common.ts'
import { type CreatorBalance, creatorBalance } from '../ledger/ledger.service.ts'
import type { Platform } from '../platform/platform.ts'
import { cycleSums, payoutSums, reachOf, type Sum } from './desk-status.store.ts'

/** What a suspension of one account reaches, before it is done. Amounts in paisa. */
export interface SuspensionPreview {
  /** They end. */
  sessions: number
  creator: {
    /** They go on leading to the shop, and earn nothing more. */
    links: number
    pendingApplications: number
    /** Not sent yet: they wait. */
    payoutsPending: Sum
    /** Sent: they run on. */
    payoutsSubmitted: Sum
    balance: CreatorBalance
  } | null
  merchant: {
    stores: number
    /** They leave the catalogue. */
    liveOffers: number
    /** They answer 410. */
    links: number
    pendingApplications: number
    /** Still closed and invoiced. */
    openCycles: Sum
    unpaidCycles: Sum
  } | null
}

export async function previewSuspension(
  { database: { reader }, clock }: Platform,
  { id, role }: { id: string; role: Role },
): Promise<SuspensionPreview> {
  const now = clock.now()
  const party = role === 'merchant' ? 'merchant_id' : 'creator_id'
  const { sessions, links, applications, offers, stores } = await reachOf(reader, party, id, now)
  const common = { links, pendingApplications: applications }
  if (role === 'merchant') {
    const { open, closed } = await cycleSums(reader, id, { now, unpaidBefore: now })
    const merchant = { ...common, stores, liveOffers: offers, openCycles: open, unpaidCycles: closed }
    return { sessions, creator: null, merchant }
  }
  if (role !== 'creator') return { sessions, creator: null, merchant: null }
  const { pending, submitted } = await payoutSums(reader, id)
  const balance = await creatorBalance(reader, id)
  return {
    sessions,
    creator: { ...common, payoutsPending: pending, payoutsSubmitted: submitted, balance },
    merchant: null,
  }
}
