import { DAY_MS } from '../../shared/durations.ts'
import type { Store } from '../../shared/schemas/stores.ts'
import { closeFlag, openFlags, raiseFlag, resolvedFlagTimes } from '../flags/flags.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Tx } from '../platform/database/database.ts'
import { lockWatermark, readWatermark, setWatermark } from '../platform/database/watermarks.ts'
import { firstIdAt, NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { activityOf, dayOf, recentlyActive, showStores, sumOf } from '../stores/store-activity.service.ts'
import { isSilent, type SourceCounts, silenceLimits, sourceShift } from '../stores/store-status.rule.ts'

const WATERMARK = 'watches.stores'
const PAGE = 500
/** A store that has been silent for longer than this was flagged or resolved long ago. */
const LONGEST_SILENCE_DAYS = 120
const WEEK = 7

type ActiveStore = Awaited<ReturnType<typeof recentlyActive>>[number]

interface SilentStore {
  store: ActiveStore['store']
  lastEventAt: number
  orderDays: number
}

interface ShiftedStore {
  store: ActiveStore['store']
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
  const silent: SilentStore[] = []
  const shifted: ShiftedStore[] = []
  // Before the transaction, which on SQLite keeps all other writers waiting.
  for (let after: string | undefined = NIL_ID; after !== undefined; ) {
    const page = { after, limit: PAGE }
    const stores = await recentlyActive(
      reader,
      { activeFrom: today - LONGEST_SILENCE_DAYS, fromDay: today - 2 * WEEK },
      page,
    )
    silent.push(...stores.flatMap((one) => silentStore(platform, one, now)))
    shifted.push(...stores.flatMap((one) => shiftedStore(platform, one, today)))
    after = stores.length < PAGE ? undefined : stores.at(-1)?.store.id
  }
  await platform.database.transaction(async (tx) => {
    if ((await lockWatermark(tx, WATERMARK, NIL_ID)) >= start) return
    await flagSilent(platform, tx, silent)
    await flagShifted(platform, tx, shifted, today)
    await closeAnswered(platform, tx)
    await setWatermark(tx, WATERMARK, start)
  })
  return false
}

function silentStore({ config }: Platform, { store, activity }: ActiveStore, now: number): SilentStore[] {
  const { lastEventAt, orderDays } = activity
  if (lastEventAt === null || !isSilent({ lastEventAt, orderDays }, now, silenceLimits(config))) return []
  return [{ store, lastEventAt, orderDays }]
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

async function flagSilent(platform: Platform, tx: Tx, silent: readonly SilentStore[]): Promise<void> {
  const ids = silent.map(({ store }) => store.id)
  const resolved = await resolvedFlagTimes(tx, 'store_silent', ids)
  const known = new Set((await openFlags(tx, 'store_silent')).map((flag) => flag.subject_id))
  const fresh: ActiveStore['store'][] = []
  for (const { store, lastEventAt, orderDays } of silent) {
    // Someone has looked at this silence.
    if ((resolved.get(store.id) ?? 0) > lastEventAt) continue
    if (!known.has(store.id)) fresh.push(store)
    await raiseFlag(platform, tx, {
      kind: 'store_silent',
      subjectType: 'store',
      subjectId: store.id,
      summary: `${store.shop_domain} has sent nothing since ${isoTime(lastEventAt).slice(0, 10)}, after orders came on ${orderDays} of 28 days. Run "affiliate stores check ${store.shop_domain}".`,
      evidence: {
        merchant_id: store.merchant_id,
        shop_domain: store.shop_domain,
        last_event_at: isoTime(lastEventAt),
        last_refused_at: store.last_refused_at === null ? null : isoTime(store.last_refused_at),
        order_days: orderDays,
      },
    })
  }
  const shown = await showStores(platform, fresh, tx)
  const events = fresh.map(({ id, merchant_id: accountId }, index) => {
    return { type: 'store.silent', accountId, subjectId: id, data: shown[index] as Store } as const
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

/** Resolves the flags of silent stores that send again. Those of stores out of use wait for a person. */
async function closeAnswered(platform: Platform, tx: Tx): Promise<void> {
  const flags = new Map((await openFlags(tx, 'store_silent')).map((flag) => [flag.subject_id, flag]))
  const activity = await activityOf(tx, [...flags.keys()], platform.clock.now())
  for (const [subjectId, flag] of flags) {
    const lastEventAt = activity.get(subjectId)?.lastEventAt ?? 0
    if (lastEventAt <= Date.parse(JSON.parse(flag.evidence).last_event_at)) continue
    await closeFlag(
      platform,
      tx,
      { kind: 'store_silent', subjectType: 'store', subjectId },
      'The store sends again.',
    )
  }
}
