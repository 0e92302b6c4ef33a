import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import { formatMoney, type Paisa } from '../../shared/money.ts'
import type { SuspensionWire } from '../../shared/schemas/admin.ts'
import type { Role } from '../../shared/schemas/common.ts'
import { EVENT_SOURCES, eventBacklog } from '../inbox/inbox.service.ts'
import { creatorBalance } from '../ledger/ledger.service.ts'
import type { Platform } from '../platform/platform.ts'
import {
  cycleSums,
  openFlagCounts,
  payoutSums,
  reachOf,
  releasedSum,
  salesByHour,
  setAsideSince,
  visitsByHour,
  waitingAttempts,
} from './operator-status.store.ts'

export const STATUS_HOURS = 24

export type OperatorStatus = Awaited<ReturnType<typeof operatorStatus>>

/** Where the whole marketplace stands; times in epoch ms, amounts in paisa. Reads along indexes, and takes no lock. */
export async function operatorStatus(platform: Platform) {
  const { reader } = platform.database
  const now = platform.clock.now()
  const from = now - STATUS_HOURS * HOUR_MS
  const sales = await salesByHour(reader, from)
  const accepted = sales.filter((row) => row.status === 'accepted')
  const inbox = []
  for (const source of EVENT_SOURCES) inbox.push({ source, ...(await eventBacklog(platform, source)) })
  const unpaidBefore = now - platform.config.FLAG_CYCLE_UNPAID_DAYS * DAY_MS
  return {
    /** The beginning of the first of the hours below. */
    from,
    clicksByHour: hours(await visitsByHour(reader, from)),
    acceptedByHour: hours(accepted),
    rejectedByHour: hours(sales.filter((row) => row.status === 'rejected')),
    commission: accepted.reduce((sum, row) => sum + row.commission, 0),
    inbox,
    setAside: await setAsideSince(reader, from),
    cycles: await cycleSums(reader, null, { now, unpaidBefore }),
    payouts: await payoutSums(reader, null),
    /** Creators with released money in no payout; `count` is how many. */
    released: await releasedSum(reader),
    attempts: await waitingAttempts(reader),
    flags: await openFlagCounts(reader),
  }
}

/** What is dated in the future, by a clock that is ahead, counts as of now. */
function hours(rows: readonly { hour: number; count: number }[]): number[] {
  const counts = new Array<number>(STATUS_HOURS).fill(0)
  for (const { hour, count } of rows) {
    const at = Math.min(Math.max(0, Number(hour)), STATUS_HOURS - 1)
    counts[at] = (counts[at] ?? 0) + count
  }
  return counts
}

export type SuspensionPreview = Awaited<ReturnType<typeof previewSuspension>>

/** What a suspension of one account reaches, before it is done. Amounts in paisa. */
export async function previewSuspension(
  { database: { reader }, clock }: Platform,
  { id, role }: { id: string; role: Role },
) {
  const now = clock.now()
  const party = role === 'merchant' ? 'merchant_id' : 'creator_id'
  const { sessions, apiKeys, links, applications, offers, stores } = await reachOf(reader, party, id, now)
  const { open, closed } = await cycleSums(reader, id, { now, unpaidBefore: now })
  const { pending, submitted } = await payoutSums(reader, id)
  return {
    /** They end. */
    sessions,
    apiKeys,
    creator:
      role === 'creator'
        ? {
            /** They go on leading to the shop, and earn nothing more. */
            links,
            pendingApplications: applications,
            /** Not sent yet: they wait. */
            payoutsPending: pending,
            /** Sent: they run on. */
            payoutsSubmitted: submitted,
            balance: await creatorBalance(reader, id),
          }
        : null,
    merchant:
      role === 'merchant'
        ? {
            stores,
            /** They leave the catalogue. */
            liveOffers: offers,
            /** They answer 410. */
            links,
            pendingApplications: applications,
            /** Still closed and invoiced. */
            openCycles: open,
            unpaidCycles: closed,
          }
        : null,
  }
}

export function wireSuspension({ sessions, apiKeys, creator, merchant }: SuspensionPreview): SuspensionWire {
  return {
    sessions,
    api_keys: apiKeys,
    creator: creator && {
      links: creator.links,
      pending_applications: creator.pendingApplications,
      payouts_pending: wireSum(creator.payoutsPending),
      payouts_submitted: wireSum(creator.payoutsSubmitted),
      balance_pending: formatMoney(creator.balance.pending),
      balance_released: formatMoney(creator.balance.released),
    },
    merchant: merchant && {
      stores: merchant.stores,
      live_offers: merchant.liveOffers,
      links: merchant.links,
      pending_applications: merchant.pendingApplications,
      open_cycles: wireSum(merchant.openCycles),
      unpaid_cycles: wireSum(merchant.unpaidCycles),
    },
  }
}

/** Of rows: how many, and their amounts together in paisa. */
export function wireSum({ count, amount }: { count: number; amount: Paisa }) {
  return { count, amount: formatMoney(amount) }
}
