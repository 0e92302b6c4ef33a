import { setTimeout as pause } from 'node:timers/promises'
import { DAY_MS } from '../../shared/durations.ts'
import { formatMoney } from '../../shared/money.ts'
import { lastResolvedFlag, raiseFlag } from '../flags/flags.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import { knownAttemptIds } from '../processor/attempts.service.ts'
import type { HeldRecord, Period, Processor } from '../processor/processor.ts'
import { PAUSE_MS, QUIET_MS, RECONCILED_DAYS } from './reconciliation.ts'

const KIND = 'reconciliation_difference'
/** Records that a flag lists. */
const MAX_LISTED = 200
/** A list with more pages has no end. Safepay's have 100 records. */
const MAX_PAGES = 10_000

interface Evidence {
  count: number
  /** The end of the period, RFC 3339. */
  until: string
  records: Record<string, unknown>[]
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
  const { database, config } = platform
  const subject = { kind: KIND, subjectType: 'processor', subjectId: config.PROCESSOR } as const
  const period = periodAfter(platform, await lastResolvedFlag(database.reader, KIND, config.PROCESSOR))
  const unknown = await findUnknown(platform, processor, period, options)
  if (unknown === null || unknown.count === 0) return unknown
  const evidence: Evidence = {
    count: unknown.count,
    until: isoTime(period.to),
    records: unknown.records.map(evidenceOf),
  }
  const [what, them] =
    unknown.count === 1
      ? ['a payment or payout that no call', 'it']
      : [`${unknown.count} payments or payouts that no calls`, 'them']
  const summary = `The processor has ${what} of this service made. Either a restored backup lacks ${them}, or something else uses the account.`
  await database.transaction((tx) =>
    raiseFlag(platform, tx, { ...subject, summary, evidence: { ...evidence } }),
  )
  return unknown
}

/** The newest records wait for the next run, as those of reconciliation do. */
function periodAfter({ clock }: Platform, resolved: { evidence: string } | undefined): Period {
  const now = clock.now()
  const seen = resolved ? Date.parse((JSON.parse(resolved.evidence) as Evidence).until) : 0
  return { from: Math.max(seen, now - RECONCILED_DAYS * DAY_MS), to: now - QUIET_MS }
}

async function findUnknown(
  { database, log }: Platform,
  processor: Processor,
  period: Period,
  { pauseMs = PAUSE_MS, signal }: { pauseMs?: number; signal?: AbortSignal },
): Promise<UnknownRecords | null> {
  const unknown: UnknownRecords = { count: 0, records: [] }
  for (let page = 0; page < MAX_PAGES; page += 1) {
    if (page > 0) await pause(pauseMs, undefined, signal ? { signal } : {}).catch(() => undefined)
    if (signal?.aborted) return null
    const found = await processor.listRecords?.(period, page)
    if (found?.kind !== 'found') {
      log.warn({ detail: found?.detail }, 'the processor does not list its records')
      return null
    }
    const ids = found.records.flatMap(({ attemptId }) => attemptId ?? [])
    const known = new Set(await knownAttemptIds(database.reader, ids))
    for (const record of found.records) {
      if (record.attemptId !== null && known.has(record.attemptId)) continue
      unknown.count += 1
      if (unknown.records.length < MAX_LISTED) unknown.records.push(record)
    }
    if (found.isLast) return unknown
  }
  log.warn({ pages: MAX_PAGES }, "the list of the processor's records has no end")
  return null
}

function evidenceOf({ id, attemptId, type, amount, status, at }: HeldRecord): Record<string, unknown> {
  return { id, request_id: attemptId, type, amount: amount === null ? null : formatMoney(amount), status, at }
}
