import type { Store } from '../../shared/schemas/stores.ts'
import { closeFlag, openFlags, raiseFlag, resolvedFlagTimes } from '../flags/flags.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { entities, LOCK } from '../platform/database/entities.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { activityOf, showStores } from '../stores/store-activity.service.ts'
import { refusalSteps } from '../stores/store-status.rule.ts'
import { refusedStoresAfter, type StoreRow } from '../stores/stores.service.ts'

const PAGE = 500

/** Notifies merchants whose stores' deliveries are refused, and flags stores for which that lasts a day. */
export async function watchRefusals(platform: Platform): Promise<boolean> {
  const { reader } = platform.database
  for (let after: string | undefined = NIL_ID; after !== undefined; ) {
    const rows: StoreRow[] = await refusedStoresAfter(reader, after, PAGE)
    const due = (await stepsOf(platform, reader, rows)).filter(
      ({ steps }) => steps.answered || steps.notify || steps.flag,
    )
    if (due.length > 0)
      await takeSteps(
        platform,
        due.map(({ store }) => store.id),
      )
    after = rows.length < PAGE ? undefined : rows.at(-1)?.id
  }
  await closeAnswered(platform)
  return false
}

async function stepsOf(platform: Platform, db: Queries | Tx, stores: readonly StoreRow[]) {
  const now = platform.clock.now()
  const activity = await activityOf(
    db,
    stores.map(({ id }) => id),
    now,
  )
  return stores.flatMap((store) => {
    const { refused_since: since, refused_count: count, last_refused_at: lastRefusedAt } = store
    if (since === null || lastRefusedAt === null) return []
    const lastEventAt = activity.get(store.id)?.lastEventAt ?? null
    const refusals = { since, count, lastRefusedAt, lastEventAt, sentAt: store.rejecting_sent_at }
    return [{ store, since, lastRefusedAt, steps: refusalSteps(refusals, now) }]
  })
}

function takeSteps(platform: Platform, storeIds: readonly string[]): Promise<void> {
  return platform.database.transaction(async (tx) => {
    const { em, Store } = await entities(tx)
    const stores = await em.find(
      Store,
      { id: { $in: [...storeIds] }, removed_at: null },
      { ...LOCK, orderBy: { id: 'asc' } },
    )
    const resolved = await resolvedFlagTimes(tx, 'store_rejecting', storeIds)
    const notified: StoreRow[] = []
    for (const { store, since, lastRefusedAt, steps } of await stepsOf(platform, tx, stores)) {
      if (steps.answered) {
        store.refused_since = null
        store.refused_count = 0
      }
      if (steps.notify) {
        store.rejecting_sent_at = platform.clock.now()
        notified.push(store)
      }
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
    await em.flush()
    const shown = await showStores(platform, notified, tx)
    const events = notified.map(({ id, merchant_id: accountId }, index) => {
      return { type: 'store.rejecting', accountId, subjectId: id, data: shown[index] as Store } as const
    })
    await publishEvents(platform, tx, events)
  })
}

/** Resolves the flags of stores whose deliveries are valid again. Those of stores out of use wait for a person. */
async function closeAnswered(platform: Platform): Promise<void> {
  const { database, clock } = platform
  const flags = await openFlags(database.reader, 'store_rejecting')
  const ids = flags.map((flag) => flag.subject_id)
  const activity = await activityOf(database.reader, ids, clock.now())
  for (const { subject_id: subjectId, evidence } of flags) {
    const lastEventAt = activity.get(subjectId)?.lastEventAt ?? 0
    if (lastEventAt <= Date.parse(JSON.parse(evidence).last_refused_at)) continue
    const subject = { kind: 'store_rejecting', subjectType: 'store', subjectId } as const
    await database.transaction((tx) => closeFlag(platform, tx, subject, 'Valid deliveries arrive again.'))
  }
}
