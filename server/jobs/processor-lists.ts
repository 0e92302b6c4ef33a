import { setTimeout as pause } from 'node:timers/promises'
import { DAY_MS } from '../../shared/durations.ts'
import { formatMoney } from '../../shared/money.ts'
import { closeFlag, lastResolvedFlag, raiseFlag } from '../flags/flags.service.ts'
import { unknownDeliveries } from '../inbox/events.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import { knownAttemptIds } from '../processor/attempts.service.ts'
import type { HeldRecord, Period, Processor } from '../processor/processor.ts'
import { PAUSE_MS, QUIET_MS, RECONCILED_DAYS } from './reconciliation.ts'

/** Records or events that a flag lists. */
const MAX_LISTED = 200
/** A list with more pages has no end. Safepay's have 100 records. */
const MAX_PAGES = 10_000

/**
 * Flags the events that the processor gave up delivering and that never arrived otherwise. It applies none of them. Returns how many there
 * are; `null` when the processor does not answer or cannot be asked. Events that a person has seen are not flagged again.
 */
export async function flagUndelivered(platform: Platform, processor: Processor): Promise<number | null> {
  if (!processor.undelivered) return null
  const { database, clock, config, log } = platform
  const found = await processor.undelivered(clock.now() - RECONCILED_DAYS * DAY_MS)
  if (found.kind === 'unavailable') {
    log.warn({ detail: found.detail }, 'the processor does not list undelivered events')
    return null
  }
  const ids = found.events.map(({ id }) => id)
  const unknown = new Set(await unknownDeliveries(database.reader, ids))
  const missing = found.events.filter(({ id }) => unknown.has(id))
  const kind = 'events_undelivered'
  const subject = { kind, subjectType: 'processor', subjectId: config.PROCESSOR } as const
  await database.transaction(async (tx) => {
    const resolved = await lastResolvedFlag(tx, kind, config.PROCESSOR)
    const seen: { id: string }[] = resolved ? JSON.parse(resolved.evidence).events : []
    if (missing.length === 0) {
      await closeFlag(platform, tx, subject, 'All events have arrived.')
    } else if (missing.some(({ id }) => !seen.some((event) => event.id === id))) {
      await raiseFlag(platform, tx, {
        ...subject,
        summary: `The processor gave up delivering ${missing.length} ${missing.length === 1 ? 'event' : 'events'}. See what "affiliate billing reconcile" finds, and ask the processor to send them again.`,
        evidence: { count: missing.length, events: missing.slice(0, MAX_LISTED) },
      })
    }
  })
  return missing.length
}

interface UnknownRecords {
  count: number
  /** The newest of them. */
  records: HeldRecord[]
}

/**
 * Flags what the processor made for us in the last 40 days and no call of ours asked for. It moves nothing. Returns what it found; `null`
 * when the processor does not answer or cannot be asked, or the run is stopped. After a flag is resolved, only later records count.
 */
export async function flagUnknownRecords(
  platform: Platform,
  processor: Processor,
  options: { pauseMs?: number; signal?: AbortSignal } = {},
): Promise<UnknownRecords | null> {
  if (!processor.listRecords) return null
  const { database, config, clock } = platform
  const now = clock.now()
  const kind = 'reconciliation_difference'
  const resolved = await lastResolvedFlag(database.reader, kind, config.PROCESSOR)
  const seen = resolved ? Date.parse(JSON.parse(resolved.evidence).until) : 0
  // The newest records wait for the next run, as those of reconciliation do.
  const period = { from: Math.max(seen, now - RECONCILED_DAYS * DAY_MS), to: now - QUIET_MS }
  const unknown = await findUnknown(platform, processor, period, options)
  if (unknown === null || unknown.count === 0) return unknown
  const { count } = unknown
  const [what, them] =
    count === 1
      ? ['a payment or payout that no call', 'it']
      : [`${count} payments or payouts that no calls`, 'them']
  await database.transaction((tx) =>
    raiseFlag(platform, tx, {
      kind,
      subjectType: 'processor',
      subjectId: config.PROCESSOR,
      summary: `The processor has ${what} of this service made. Either a restored backup lacks ${them}, or something else uses the account.`,
      evidence: { count, until: isoTime(period.to), records: unknown.records.map(evidenceOf) },
    }),
  )
  return unknown
}

async function findUnknown(
  { database, log }: Platform,
  processor: Processor,
  period: Period,
  { pauseMs = PAUSE_MS, signal }: { pauseMs?: number; signal?: AbortSignal },
): Promise<UnknownRecords | null> {
  const unknown: UnknownRecords = { count: 0, records: [] }
  for (let page = 0; page < MAX_PAGES; page += 1) {
    if (page > 0) await pause(pauseMs, undefined, signal && { signal }).catch(() => undefined)
    if (signal?.aborted) return null
    const found = await processor.listRecords?.(period, page)
    if (found?.kind !== 'found') {
      log.warn({ detail: found?.detail }, 'the processor does not list its records')
      return null
    }
    const ids = found.records.flatMap(({ attemptId }) => attemptId ?? [])
    const known = new Set(await knownAttemptIds(database.reader, ids))
    const others = found.records.filter(({ attemptId }) => attemptId === null || !known.has(attemptId))
    unknown.count += others.length
    unknown.records = [...unknown.records, ...others].slice(0, MAX_LISTED)
    if (found.isLast) return unknown
  }
  log.warn({ pages: MAX_PAGES }, "the list of the processor's records has no end")
  return null
}

function evidenceOf({ id, attemptId, type, amount, status, at }: HeldRecord): Record<string, unknown> {
  return { id, request_id: attemptId, type, amount: amount === null ? null : formatMoney(amount), status, at }
}
