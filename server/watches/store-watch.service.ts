import { DAY_MS } from '../../shared/durations.ts'
import type { Store } from '../../shared/schemas/stores.ts'
import {
  closeFlag,
  type FlagKind,
  type NewFlag,
  openFlags,
  raiseFlags,
  resolvedFlagTimes,
} from '../flags/flags.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { lockWatermark, readWatermark, setWatermark } from '../platform/database/watermarks.ts'
import { firstIdAt, NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { activityOf, dayOf, recentlyActive, showStores, sumOf } from '../stores/store-activity.service.ts'
import { isSilent, refusalSteps, type SourceCounts, sourceShift } from '../stores/store-status.rule.ts'
import { lockStores, noteRefusalSteps, refusedStores, type StoreRow } from '../stores/stores.service.ts'

const WATERMARK = 'watches.stores'
const PAGE = 500
/** A store that has been silent for longer than this was flagged or resolved long ago. */
const LONGEST_SILENCE_DAYS = 120
const WEEK = 7

type ActiveStore = Awaited<ReturnType<typeof recentlyActive>>[number]

/** What shows that something is wrong with a store. */
interface StoreSign extends Pick<NewFlag, 'summary' | 'evidence'> {
  store: StoreRow
  /** Epoch ms. */
  since: number
}

/** Flags signs of stores, but for those that someone has looked at since they began. Returns the stores. */
async function flagStores(platform: Platform, tx: Tx, kind: FlagKind, signs: readonly StoreSign[]) {
  const ids = signs.map(({ store }) => store.id)
  const resolved = await resolvedFlagTimes(tx, kind, ids)
  const fresh = signs.filter(({ store, since }) => (resolved.get(store.id) ?? -1) < since)
  const flags = fresh.map(({ store: { id, merchant_id, shop_domain }, summary, evidence }) => ({
    kind,
    subjectType: 'store' as const,
    subjectId: id,
    summary,
    evidence: { merchant_id, shop_domain, ...evidence },
  }))
  await raiseFlags(platform, tx, flags)
  return fresh.map(({ store }) => store)
}

/** Once a day: flags stores that went silent, and stores whose orders name their links in another way than the week before. */
export async function watchStores(platform: Platform): Promise<boolean> {
  const { database, clock } = platform
  const { reader } = database
  const now = clock.now()
  const today = dayOf(now)
  const start = firstIdAt(today * DAY_MS)
  if (((await readWatermark(reader, WATERMARK)) ?? '') >= start) return false
  const silent: StoreSign[] = []
  const shifted: StoreSign[] = []
  const since = { activeFrom: today - LONGEST_SILENCE_DAYS, fromDay: today - 2 * WEEK }
  // Before the transaction, which on SQLite keeps all other writers waiting.
  for (let after: string | undefined = NIL_ID; after !== undefined; ) {
    const stores = await recentlyActive(reader, since, { after, limit: PAGE })
    silent.push(...stores.flatMap((one) => silenceOf(platform, one, now)))
    shifted.push(...stores.flatMap((one) => shiftOf(platform, one, today)))
    after = stores.length < PAGE ? undefined : stores.at(-1)?.store.id
  }
  await database.transaction(async (tx) => {
    if ((await lockWatermark(tx, WATERMARK, NIL_ID)) >= start) return
    const known = (await openFlags(tx, 'store_silent')).map((flag) => flag.subject_id)
    const flagged = await flagStores(platform, tx, 'store_silent', silent)
    await flagStores(platform, tx, 'tracking_source_shift', shifted)
    const fresh = flagged.filter(({ id }) => !known.includes(id))
    await publishStores(platform, tx, 'store.silent', fresh)
    await setWatermark(tx, WATERMARK, start)
  })
  await closeAnswered(platform, 'store_silent', 'last_event_at', 'The store sends again.')
  return false
}

function silenceOf({ config }: Platform, { store, activity }: ActiveStore, now: number): StoreSign[] {
  const { lastEventAt, orderDays } = activity
  if (lastEventAt === null || !isSilent({ lastEventAt, orderDays }, now, config)) return []
  const { shop_domain: domain, last_refused_at: refusedAt } = store
  const summary = `${domain} has sent nothing since ${isoTime(lastEventAt).slice(0, 10)}, after orders came on ${orderDays} of 28 days. Run "affiliate stores check ${domain}".`
  const evidence = {
    last_event_at: isoTime(lastEventAt),
    last_refused_at: refusedAt === null ? null : isoTime(refusedAt),
    order_days: orderDays,
  }
  return [{ store, since: lastEventAt, summary, evidence }]
}

function shiftOf({ config }: Platform, { store, days }: ActiveStore, today: number): StoreSign[] {
  const { FLAG_TRACKING_SHIFT: limit, FLAG_TRACKING_SHIFT_ORDERS: least } = config
  if (least === 0) return []
  const ordersFrom = (from: number) => sumOf(days.filter(({ day }) => day >= from && day < from + WEEK))
  const before = ordersFrom(today - 2 * WEEK)
  const after = ordersFrom(today - WEEK)
  const share = sourceShift(before, after, least)
  if (share * 10_000 <= limit) return []
  const percent = Math.round(share * 100)
  const summary = `${percent} % of the orders of ${store.shop_domain} name their link in another way than the week before: ${words(before)} became ${words(after)}.`
  const evidence = { week_before: before, week: after, moved_percent: percent }
  // A shift is seen for several days in a row.
  return [{ store, since: (today - WEEK) * DAY_MS, summary, evidence }]
}

function words(counts: SourceCounts): string {
  return Object.entries(counts)
    .filter(([, orders]) => orders > 0)
    .map(([source, orders]) => `${source} ${orders}`)
    .join(', ')
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

/** Notifies merchants whose stores' deliveries are refused, and flags stores for which that lasts a day. */
export async function watchRefusals(platform: Platform): Promise<boolean> {
  const { reader } = platform.database
  for (let after: string | undefined = NIL_ID; after !== undefined; ) {
    const rows: StoreRow[] = await refusedStores(reader, after, PAGE)
    const ids = (await stepsOf(platform, reader, rows)).map(({ store }) => store.id)
    if (ids.length > 0) await platform.database.transaction((tx) => takeSteps(platform, tx, ids))
    after = rows.length < PAGE ? undefined : rows.at(-1)?.id
  }
  await closeAnswered(platform, 'store_rejecting', 'last_refused_at', 'Valid deliveries arrive again.')
  return false
}

/** The stores whose refused deliveries call for something. */
async function stepsOf(platform: Platform, db: Queries | Tx, stores: readonly StoreRow[]) {
  const now = platform.clock.now()
  const ids = stores.map(({ id }) => id)
  const activity = await activityOf(db, ids, now)
  return stores.flatMap((store) => {
    const { refused_since: since, refused_count: count, last_refused_at: lastRefusedAt } = store
    if (since === null || lastRefusedAt === null) return []
    const lastEventAt = activity.get(store.id)?.lastEventAt ?? null
    const refusals = { since, count, lastRefusedAt, lastEventAt, sentAt: store.rejecting_sent_at }
    const steps = refusalSteps(refusals, now)
    return Object.values(steps).includes(true) ? [{ store, since, lastRefusedAt, steps }] : []
  })
}

async function takeSteps(platform: Platform, tx: Tx, storeIds: readonly string[]): Promise<void> {
  const due = await stepsOf(platform, tx, await lockStores(tx, storeIds))
  for (const { store, steps } of due) {
    await noteRefusalSteps(tx, store, {
      ...(steps.answered && { refused_since: null, refused_count: 0 }),
      ...(steps.notify && { rejecting_sent_at: platform.clock.now() }),
    })
  }
  const signs = due.flatMap(({ store, since, lastRefusedAt, steps }) => {
    const summary = `Deliveries from ${store.shop_domain} have been refused for a day, and no valid one came. Run "affiliate stores check ${store.shop_domain}".`
    const evidence = {
      refused_since: isoTime(since),
      last_refused_at: isoTime(lastRefusedAt),
      reason: store.last_refusal,
    }
    return steps.flag ? [{ store, since: lastRefusedAt, summary, evidence }] : []
  })
  await flagStores(platform, tx, 'store_rejecting', signs)
  const notified = due.flatMap(({ store, steps }) => (steps.notify ? store : []))
  await publishStores(platform, tx, 'store.rejecting', notified)
}

/** Resolves flags about stores that have sent something since the time in `field` of their evidence. Those of stores out of use wait for a person. */
async function closeAnswered(platform: Platform, kind: FlagKind, field: string, note: string): Promise<void> {
  const { database, clock } = platform
  const flags = await openFlags(database.reader, kind)
  const ids = flags.map((flag) => flag.subject_id)
  const activity = await activityOf(database.reader, ids, clock.now())
  for (const { subject_id: subjectId, evidence } of flags) {
    const lastEventAt = activity.get(subjectId)?.lastEventAt ?? 0
    if (lastEventAt <= Date.parse(JSON.parse(evidence)[field])) continue
    await database.transaction((tx) =>
      closeFlag(platform, tx, { kind, subjectType: 'store', subjectId }, note),
    )
  }
}
