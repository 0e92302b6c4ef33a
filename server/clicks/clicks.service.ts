import { DAY_MS } from '../../shared/durations.ts'
import type { ExportedClick } from '../../shared/schemas/jobs.ts'
import { type LinkTerms, linkTerms } from '../links/links.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { advisoryLock, type Queries, type Tx } from '../platform/database/database.ts'
import { GroupCommit } from '../platform/database/group-commit.ts'
import { countRows, type KeysetScan, pageItems, type ScanScope } from '../platform/database/keyset-scan.ts'
import { isId } from '../platform/ids.ts'
import { localDay } from '../platform/local-days.ts'
import type { Platform } from '../platform/platform.ts'
import { withTimeout } from '../platform/with-timeout.ts'
import { addDailyVisits, ClickWatch } from '../watches/click-watch.service.ts'
import type { ClickKind } from './click.entity.ts'
import { agentMarkOf } from './click-kind.ts'
import {
  addToClickDays,
  addToCounts,
  type ClickRow,
  clicksById,
  clicksOfPage,
  type FirstVisit,
  insertClicks,
  SLOT_MS,
  takeUncounted,
  type UncountedRow,
} from './clicks.store.ts'
import { readVisitorKey, SharedVisitors } from './shared-visitors.service.ts'
import { AddressHashes, CountedVisitors } from './visitors.ts'

const MAX_BATCH = 256
const MAX_WAITING = 4096
const TIMEOUT_MS = 1800
/** The most rows that one transaction of the roll-up takes: clicks that come meanwhile wait for it on SQLite. */
const ROLL_UP_ROWS = 5000

export interface NewClick {
  /** A UUIDv7; the tracking reference of the visit. */
  id: string
  linkId: string
  /** Whether the visitor was sent on with the tracking reference. */
  tracked: boolean
  kind: ClickKind
  /** Epoch ms. */
  createdAt: number
  /** Where the visitor came from: to tell visitors apart, for the watch over click velocity too, and never stored. */
  address?: string
  /** The visitor's user agent, since carriers give one address to many phones; never stored either. */
  agent?: string | undefined
  /** The creator's own mark of the placement. */
  subId?: string | null
}

/** What waits to be written: of the visitor, only what tells a repeated visit, and that until it is known. */
interface WaitingClick {
  /** `repeated` is said when it is written. */
  row: ClickRow
  /** `null` for what no visitor is counted by. */
  visitor: string | null
}

interface WrittenClicks {
  kind: ClickKind
  tracked: boolean
  count: number
}

export interface ClickRecorder {
  /** Resolves when the click is on disk; refuses with `unavailable` (or the database's own error) when it may not be. */
  record(click: NewClick): Promise<void>
  /** How many clicks this recorder has written. */
  written(): WrittenClicks[]
  /** Counts a visitor who was sent on without a click. */
  countLost(): void
  lost(): number
  /** How many clicks wait for the next write. */
  waiting(): number
  /** Resolves when no click is waiting, nor what follows from clicks. */
  idle(): Promise<void>
}

/** Gathers the clicks of concurrent requests into one insert each. One for each process. */
export function createClickRecorder(platform: Platform): ClickRecorder {
  const counted = new CountedVisitors()
  const shared = platform.database.dialect === 'postgresql' ? new SharedVisitors(platform) : null
  const addresses = new AddressHashes(shared ? () => withTimeout(readVisitorKey(platform)) : undefined)
  const written: WrittenClicks[] = []
  let lost = 0
  const clicks = new GroupCommit<WaitingClick, void>({
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
    timeoutMs: TIMEOUT_MS,
    async write(batch) {
      const first = await writeClicks(platform, counted, batch)
      shared?.add(first)
      for (const { row } of batch) countWritten(written, row.kind, row.tracked === 1)
      return []
    },
  })
  const watch = new ClickWatch(platform)
  const observed = (click: NewClick): WaitingClick => {
    const { id, linkId, tracked, kind, createdAt, address, agent, subId: sub_id = null } = click
    let visitor: string | null = null
    if (tracked && kind === 'visit' && address) {
      const from = addresses.of(address, createdAt)
      watch.observe({ visitor: from, linkId, at: createdAt, address })
      visitor = from + agentMarkOf(agent)
    }
    const row = {
      id,
      link_id: linkId,
      tracked: tracked ? 1 : 0,
      kind,
      repeated: 0,
      created_at: createdAt,
      sub_id,
    }
    return { row, visitor }
  }
  return {
    record: (click) =>
      addresses.isReady
        ? clicks.add(observed(click))
        : addresses.ready().then(() => clicks.add(observed(click))),
    written: () => written,
    countLost() {
      lost += 1
    },
    lost: () => lost,
    waiting: () => clicks.waiting,
    async idle() {
      await clicks.idle()
      await Promise.all([watch.flush(), shared?.flush(), addresses.ready()])
    },
  }
}

/** At most nine combinations of kind and `tracked`. */
function countWritten(written: WrittenClicks[], kind: ClickKind, tracked: boolean): void {
  const one = written.find((some) => some.kind === kind && some.tracked === tracked)
  if (one) one.count += 1
  else written.push({ kind, tracked, count: 1 })
}

/**
 * Marks the clicks that repeat one, and writes them: here the clicks before are on disk or known to have failed, so none repeats a lost one.
 * When the write fails its visitors are forgotten; if it was written nevertheless, one visit counts twice. Returns the visits that repeat none.
 */
async function writeClicks(
  { database }: Platform,
  counted: CountedVisitors,
  batch: readonly WaitingClick[],
): Promise<FirstVisit[]> {
  const first: FirstVisit[] = []
  const rows = batch.map(({ row, visitor }) => {
    if (visitor === null) return row
    if (counted.repeats(row.link_id, visitor, row.created_at)) row.repeated = 1
    else first.push({ link_id: row.link_id, visitor, counted_at: row.created_at, sub_id: row.sub_id ?? '' })
    return row
  })
  try {
    await database.executeBatch(insertClicks(database.dialect, rows))
    return first
  } catch (error) {
    counted.remove(first)
    throw error
  }
}

/** A click and the link it followed, with the terms that its approval locked: what the sale decision looks at. */
export interface LinkedClick {
  click: { id: string; created_at: number; tracked: boolean }
  link: LinkTerms
}

/**
 * Clicks with their links, by click id. What cannot be an id, or is none of ours, is missing. Throws `TamperedRow` for a link that was
 * changed, and `UnknownKeyError`.
 */
export async function linksOfClicks(db: Queries | Tx, keys: AppKeys, clickIds: readonly string[]) {
  const clicks = await clicksById(db, [...new Set(clickIds.filter(isId))])
  const links = await linkTerms(
    db,
    keys,
    clicks.map((click) => click.link_id),
  )
  return new Map(
    clicks.flatMap(({ id, created_at, tracked, link_id }) => {
      const link = links.get(link_id)
      return link ? [[id, { click: { id, created_at, tracked: tracked === 1 }, link }] as const] : []
    }),
  )
}

/** The sub ids of those of these clicks that have one. */
export async function subIdsOf(db: Queries | Tx, clickIds: readonly string[]) {
  const clicks = await clicksById(db, [...new Set(clickIds)])
  return new Map(clicks.flatMap(({ id, sub_id }) => (sub_id === null ? [] : [[id, sub_id] as const])))
}

/** Clicks of a creator's links, of the links to a merchant's offers (without sub ids), or all, for exports; visits, bots and the rest. */
export function scanClicks({ database: { reader } }: Platform, scope: ScanScope): KeysetScan<ExportedClick> {
  const isMerchant = scope !== 'all' && 'merchantId' in scope
  return {
    count: (step) => countRows(reader, step, clicksOfPage(reader, scope, step)),
    async read(step) {
      const rows = await clicksOfPage(reader, scope, step).execute()
      return pageItems(step, rows, ({ id, slug, tracked, kind, created_at, sub_id }) => ({
        id,
        affiliate_link_slug: slug ?? '',
        tracked: tracked === 1,
        kind,
        created_at: isoTime(created_at ?? 0),
        ...(!isMerchant && { sub_id }),
      }))
    },
  }
}

/**
 * Adds the clicks that were written since the last roll-up to the counts by link, and by link and day (UTC, and local). Goes by what is
 * committed, not by time. Several workers may run it: they take turns.
 */
export async function rollUpClicks({ database, config }: Platform): Promise<void> {
  for (;;) {
    const taken = await database.transaction(async (tx) => {
      await advisoryLock(tx, 'roll-up of clicks')
      const rows = await takeUncounted(tx, ROLL_UP_ROWS)
      if (rows.length === 0) return 0
      await addToCounts(tx, rows)
      await addDailyVisits(tx, rows.map(utcDay))
      await addToClickDays(tx, rows.flatMap(localDays(config.BILLING_TIMEZONE)))
      return rows.length
    })
    if (taken < ROLL_UP_ROWS) return
  }
}

function utcDay(row: UncountedRow) {
  return { ...row, day: Math.floor((row.slot * SLOT_MS) / DAY_MS) }
}

/** The rows of a day for these clicks: of all visits, and of their sub id. */
function localDays(zone: string) {
  const days = new Map<number, number>()
  return ({ link_id, slot, sub_id, visits, unique_visits }: UncountedRow) => {
    const day = days.get(slot) ?? localDay(slot * SLOT_MS, zone)
    days.set(slot, day)
    const counted = { link_id, day, visits, unique_visits }
    return (sub_id === '' ? [''] : ['', sub_id]).map((sub) => ({ ...counted, sub_id: sub }))
  }
}

export { countVisits, earlierVisits, SLOT_MS, type Visits } from './clicks.store.ts'
