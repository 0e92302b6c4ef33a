import type { Role } from '../../shared/schemas/common.ts'
import { type CreatorBalance, creatorBalance } from '../ledger/ledger.service.ts'
import type { Platform } from '../platform/platform.ts'
import {
  type Amounts,
  countLinks,
  countLiveOffers,
  countPendingApplications,
  countSessions,
  countStores,
  payoutsUnderWay,
  unpaidCycles,
} from './suspension-preview.store.ts'

/** What a suspension of one account reaches, before it is done. Amounts in paisa. */
export interface SuspensionPreview {
  /** They end. */
  sessions: number
  creator: {
    /** They go on leading to the shop, and earn nothing more. */
    links: number
    pendingApplications: number
    /** Not sent yet: they wait. */
    payoutsPending: Amounts
    /** Sent: they run on. */
    payoutsSubmitted: Amounts
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
    openCycles: Amounts
    unpaidCycles: Amounts
  } | null
}

export async function previewSuspension(
  platform: Platform,
  user: { id: string; role: Role },
): Promise<SuspensionPreview> {
  const { reader } = platform.database
  return {
    sessions: await countSessions(reader, user.id, platform.clock.now()),
    creator: user.role === 'creator' ? await creatorPart(platform, user.id) : null,
    merchant: user.role === 'merchant' ? await merchantPart(platform, user.id) : null,
  }
}

async function creatorPart(platform: Platform, id: string): Promise<SuspensionPreview['creator']> {
  const { reader } = platform.database
  const { pending, submitted } = await payoutsUnderWay(reader, id)
  return {
    links: await countLinks(reader, 'creator_id', id),
    pendingApplications: await countPendingApplications(reader, 'creator_id', id),
    payoutsPending: pending,
    payoutsSubmitted: submitted,
    balance: await creatorBalance(reader, id),
  }
}

async function merchantPart(platform: Platform, id: string): Promise<SuspensionPreview['merchant']> {
  const { reader } = platform.database
  const { open, closed } = await unpaidCycles(reader, id)
  return {
    stores: await countStores(reader, id),
    liveOffers: await countLiveOffers(reader, id),
    links: await countLinks(reader, 'merchant_id', id),
    pendingApplications: await countPendingApplications(reader, 'merchant_id', id),
    openCycles: open,
    unpaidCycles: closed,
  }
}
