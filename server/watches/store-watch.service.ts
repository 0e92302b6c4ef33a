import { DAY_MS } from '../../shared/durations.ts'
import type { Store } from '../../shared/schemas/stores.ts'
import { openFlags, raiseFlag, resolvedFlagTimes } from '../flags/flags.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { lockWatermark, readWatermark, setWatermark } from '../platform/database/watermarks.ts'
import { firstIdAt, NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { activityOf, dayOf, recentlyActive, showStores, sumOf } from '../stores/store-activity.service.ts'
import {
  isSilent,
  refusalSteps,
  type SourceCounts,
  silenceLimits,
  sourceShift,
} from '../stores/store-status.rule.ts'
import { lockStores, noteRefusalSteps, refusedStores, type StoreRow } from '../stores/stores.service.ts'
import { closeAnswered } from './patterns.service.ts'

const WATERMARK = 'watches.stores'
const PAGE = 500
/** A store that has been silent for longer than this was flagged or resolved long ago. */
const LONGEST_SILENCE_DAYS = 120
const WEEK = 7

type ActiveStore = Awaited<ReturnType<typeof recentlyActive>>[number]

interface ShiftedStore {
  store: StoreRow
  before: SourceCounts
  after: SourceCounts
  share: number
}

/** Once a day: flags stores that went silent, and stores whose orders name their links in another way than the week before. */
export async function watchStores(platform: Platform): Promise<boolean> {
  const { reader } = platform.database
  const now = platform.clock.now()
  const today = dayOf(now)
  const start = firstIdAt(today * DAY_MS)
  if (((await readWatermark(reader, WATERMARK)) ?? '') >= start) return false
  const silent: ActiveStore[] = []
  const shifted: ShiftedStore[] = []
  const since = { activeFrom: today - LONGEST_SILENCE_DAYS, fromDay: today - 2 * WEEK }
  // Before the transaction, which on SQLite keeps all other writers waiting.
  for (let after: string | undefined = NIL_ID; after !== undefined; ) {
    const stores = await recentlyActive(reader, since, { after, limit: PAGE })
    silent.push(...stores.filter((one) => isSilentNow(platform, one, now)))
    shifted.push(...stores.flatMap((one) => shiftedStore(platform, one, today)))
    after = stores.length < PAGE ? undefined : stores.at(-1)?.store.id
  }
  await platform.database.transaction(async (tx) => {
    if ((await lockWatermark(tx, WATERMARK, NIL_ID)) >= start) return
    await flagSilent(platform, tx, silent)
    await flagShifted(platform, tx, shifted, today)
    await setWatermark(tx, WATERMARK, start)
  })
  await closeAnswered(platform, 'store_silent', 'last_event_at', 'The store sends again.')
  return false
}

function isSilentNow({ config }: Platform, { activity }: ActiveStore, now: number): boolean {
  const { lastEventAt, orderDays } = activity
  return lastEventAt !== null && isSilent({ lastEventAt, orderDays }, now, silenceLimits(config))
}

function shiftedStore({ config }: Platform, { store, days }: ActiveStore, today: number): ShiftedStore[] {
  const { FLAG_TRACKING_SHIFT: limit, FLAG_TRACKING_SHIFT_ORDERS: least } = config
  if (least === 0) return []
  const ordersFrom = (from: number) => sumOf(days.filter(({ day }) => day >= from && day < from + WEEK))
  const before = ordersFrom(today - 2 * WEEK)
  const after = ordersFrom(today - WEEK)
  const share = sourceShift(before, after, least)
  return share * 10_000 > limit ? [{ store, before, after, share }] : []
}

async function flagSilent(platform: Platform, tx: Tx, silent: readonly ActiveStore[]): Promise<void> {
  const ids = silent.map(({ store }) => store.id)
  const resolved = await resolvedFlagTimes(tx, 'store_silent', ids)
  const known = new Set((await openFlags(tx, 'store_silent')).map((flag) => flag.subject_id))
  const fresh: StoreRow[] = []
  for (const { store, activity } of silent) {
    const lastEventAt = activity.lastEventAt ?? 0
    // Someone has looked at this silence.
    if ((resolved.get(store.id) ?? 0) > lastEventAt) continue
    if (!known.has(store.id)) fresh.push(store)
    await raiseFlag(platform, tx, {
      kind: 'store_silent',
      subjectType: 'store',
      subjectId: store.id,
      summary: `${store.shop_domain} has sent nothing since ${isoTime(lastEventAt).slice(0, 10)}, after orders came on ${activity.orderDays} of 28 days. Run "affiliate stores check ${store.shop_domain}".`,
      evidence: {
        merchant_id: store.merchant_id,
        shop_domain: store.shop_domain,
        last_event_at: isoTime(lastEventAt),
        last_refused_at: store.last_refused_at === null ? null : isoTime(store.last_refused_at),
        order_days: activity.orderDays,
      },
    })
  }
  await publishStores(platform, tx, 'store.silent', fresh)
}

/** Notifies the stores' merchants. */
async function publishStores(
  platform: Platform,
  tx: Tx,
  type: 'store.silent' | 'store.rejecting',
  stores: readonly StoreRow[],
): Promise<void> {
  const shown = await showStores(platform, stores, tx)
  const events = stores.map(({ id, merchant_id: accountId }, index) => {
    return { type, accountId, subjectId: id, data: shown[index] as Store } as const
  })
  await publishEvents(platform, tx, events)
}

async function flagShifted(
  platform: Platform,
  tx: Tx,
  shifted: readonly ShiftedStore[],
  today: number,
): Promise<void> {
  const ids = shifted.map(({ store }) => store.id)
  const resolved = await resolvedFlagTimes(tx, 'tracking_source_shift', ids)
  for (const { store, before, after, share } of shifted) {
    // A shift is seen for several days in a row.
    if ((resolved.get(store.id) ?? 0) >= (today - WEEK) * DAY_MS) continue
    const moved_percent = Math.round(share * 100)
    await raiseFlag(platform, tx, {
      kind: 'tracking_source_shift',
      subjectType: 'store',
      subjectId: store.id,
      summary: `${moved_percent} % of the orders of ${store.shop_domain} name their link in another way than the week before: ${words(before)} became ${words(after)}.`,
      evidence: {
        merchant_id: store.merchant_id,
        shop_domain: store.shop_domain,
        week_before: before,
        week: after,
        moved_percent,
      },
    })
  }
}

function words(counts: SourceCounts): string {
  return Object.entries(counts)
    .filter(([, orders]) => orders > 0)
    .map(([source, orders]) => `${source} ${orders}`)
    .join(', ')
}

/** Notifies merchants whose stores' deliveries are refused, and flags stores for which that lasts a day. */
export async function watchRefusals(platform: Platform): Promise<boolean> {
  const { reader } = platform.database
  for (let after: string | undefined = NIL_ID; after !== undefined; ) {
    const rows: StoreRow[] = await refusedStores(reader, after, PAGE)
    const due = (await stepsOf(platform, reader, rows)).filter(
      ({ steps }) => steps.answered || steps.notify || steps.flag,
    )
    const ids = due.map(({ store }) => store.id)
    if (ids.length > 0) await platform.database.transaction((tx) => takeSteps(platform, tx, ids))
    after = rows.length < PAGE ? undefined : rows.at(-1)?.id
  }
  await closeAnswered(platform, 'store_rejecting', 'last_refused_at', 'Valid deliveries arrive again.')
  return false
}

async function stepsOf(platform: Platform, db: Queries | Tx, stores: readonly StoreRow[]) {
  const now = platform.clock.now()
  const ids = stores.map(({ id }) => id)
  const activity = await activityOf(db, ids, now)
  return stores.flatMap((store) => {
    const { refused_since: since, refused_count: count, last_refused_at: lastRefusedAt } = store
    if (since === null || lastRefusedAt === null) return []
    const lastEventAt = activity.get(store.id)?.lastEventAt ?? null
    const refusals = { since, count, lastRefusedAt, lastEventAt, sentAt: store.rejecting_sent_at }
    return [{ store, since, lastRefusedAt, steps: refusalSteps(refusals, now) }]
  })
}

async function takeSteps(platform: Platform, tx: Tx, storeIds: readonly string[]): Promise<void> {
  const stores = await lockStores(tx, storeIds)
  const resolved = await resolvedFlagTimes(tx, 'store_rejecting', storeIds)
  const notified: StoreRow[] = []
  for (const { store, since, lastRefusedAt, steps } of await stepsOf(platform, tx, stores)) {
    await noteRefusalSteps(tx, store, {
      ...(steps.answered && { refused_since: null, refused_count: 0 }),
      ...(steps.notify && { rejecting_sent_at: platform.clock.now() }),
    })
    if (steps.notify) notified.push(store)
    // Someone has looked at these refusals.
    if (!steps.flag || (resolved.get(store.id) ?? 0) >= lastRefusedAt) continue
    await raiseFlag(platform, tx, {
      kind: 'store_rejecting',
      subjectType: 'store',
      subjectId: store.id,
      summary: `Deliveries from ${store.shop_domain} have been refused for a day, and no valid one came. Run "affiliate stores check ${store.shop_domain}".`,
      evidence: {
        merchant_id: store.merchant_id,
        shop_domain: store.shop_domain,
        refused_since: isoTime(since),
        last_refused_at: isoTime(lastRefusedAt),
        reason: store.last_refusal,
      },
    })
  }
  await publishStores(platform, tx, 'store.rejecting', notified)
}
