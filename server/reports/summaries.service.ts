import { DAY_MS } from '../../shared/durations.ts'
import type { Paisa } from '../../shared/money.ts'
import type { RejectionReason } from '../../shared/rejection-reasons.ts'
import { type MerchantAccount, merchantAccount } from '../billing/billing.service.ts'
import { countVisits, type Visits } from '../clicks/clicks.service.ts'
import { type CreatorBalance, creatorBalance } from '../ledger/ledger.service.ts'
import { type NextPayout, nextPayout } from '../payouts/payout-run.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { displayNamesOf } from '../users/users.service.ts'
import {
  type CreatorShare,
  countOutcomes,
  type OfferShare,
  type OwnScope,
  offerTitles,
  ownLinkIds,
  topCreators,
  topOffers,
} from './summaries.store.ts'

const USUAL_DAYS = 30
/** What a caller can have counted at once. */
const MOST_DAYS = 366
const LINKS_AT_ONCE = 1000

/** Which sales are counted: epoch ms, `null` for what was not asked for. */
export interface AskedPeriod {
  from: number | null
  to: number | null
}

export interface Outcomes {
  /** Epoch ms; `to` exclusive. */
  from: number
  to: number
  accepted: number
  /** Of the accepted ones. */
  byCoupon: number
  /** Of the accepted sales, paisa. */
  commission: Paisa
  rejected: number
  /** The most frequent first. */
  byReason: { reason: RejectionReason; sales: number }[]
}

export interface CreatorSummary {
  visits: Visits
  sales: Outcomes
  /** As the journal has it. */
  balance: CreatorBalance
  next: NextPayout
}

/** What has come of a creator's links. Refuses with `validation_failed` a period that ends before it begins, or is too long. */
export async function creatorSummary(
  platform: Platform,
  creatorId: string,
  asked: AskedPeriod,
): Promise<CreatorSummary> {
  const { reader } = platform.database
  return {
    sales: await outcomesOf(platform, { creatorId }, asked),
    visits: await ownVisits(reader, creatorId),
    balance: await creatorBalance(reader, creatorId),
    next: await nextPayout(platform, creatorId),
  }
}

export interface MerchantSummary {
  sales: Outcomes
  account: MerchantAccount
  /** Of the open cycle, most commission first. */
  byOffer: (OfferShare & { title: string })[]
  byCreator: (CreatorShare & { displayName: string })[]
}

/** Where a merchant stands; `top` offers and creators at most. Refuses as `creatorSummary` does. */
export async function merchantSummary(
  platform: Platform,
  merchantId: string,
  asked: AskedPeriod,
  top: number,
): Promise<MerchantSummary> {
  const { reader } = platform.database
  const sales = await outcomesOf(platform, { merchantId }, asked)
  const account = await merchantAccount(reader, merchantId)
  const cycleId = account.openCycle?.id
  const offers = cycleId === undefined ? [] : await topOffers(reader, cycleId, top)
  const creators = cycleId === undefined ? [] : await topCreators(reader, cycleId, top)
  const titles = await offerTitles(
    reader,
    offers.map((offer) => offer.offer_id),
  )
  const names = await displayNamesOf(
    reader,
    creators.map((creator) => creator.creator_id),
  )
  return {
    sales,
    account,
    byOffer: offers.map((offer) => ({ ...offer, title: titles.get(offer.offer_id) ?? '' })),
    byCreator: creators.map((creator) => ({
      ...creator,
      displayName: names.get(creator.creator_id) ?? '',
    })),
  }
}

async function outcomesOf(platform: Platform, scope: OwnScope, asked: AskedPeriod): Promise<Outcomes> {
  const to = asked.to ?? platform.clock.now()
  const from = asked.from ?? to - USUAL_DAYS * DAY_MS
  refusePeriod(from, to)
  const rows = await countOutcomes(platform.database.reader, scope, { from, to: asked.to })
  const accepted = rows.find((row) => row.rejection_reason === null)
  const byReason = rows.flatMap(({ rejection_reason: reason, sales }) =>
    reason === null ? [] : [{ reason, sales }],
  )
  return {
    from,
    to,
    accepted: accepted?.sales ?? 0,
    byCoupon: accepted?.by_coupon ?? 0,
    commission: accepted?.commission ?? 0,
    rejected: byReason.reduce((sum, { sales }) => sum + sales, 0),
    byReason,
  }
}

function refusePeriod(from: number, to: number): void {
  const wrong = (path: string, message: string) =>
    new Refusal('validation_failed', 'There is no such period.', { issues: [{ path, message }] })
  if (from < 0 || to < 0) throw wrong(from < 0 ? 'from' : 'to', 'must not be before 1970')
  if (from > to) throw wrong('from', 'must not be after `to`')
  if (to - from > MOST_DAYS * DAY_MS)
    throw wrong('from', `must not be more than ${MOST_DAYS} days before \`to\``)
}

async function ownVisits(db: Queries, creatorId: string): Promise<Visits> {
  const visits = { all: 0, unique: 0 }
  for (let after: string | null = null; ; ) {
    const ids: string[] = await ownLinkIds(db, creatorId, after, LINKS_AT_ONCE)
    for (const { all, unique } of (await countVisits(db, ids)).values()) {
      visits.all += all
      visits.unique += unique
    }
    if (ids.length < LINKS_AT_ONCE) return visits
    after = ids.at(-1) ?? null
  }
}
