import { DAY_MS } from '../../shared/durations.ts'
import { closeFlag, lastResolvedFlag, raiseFlag } from '../flags/flags.service.ts'
import { unknownDeliveries } from '../inbox/events.service.ts'
import type { Platform } from '../platform/platform.ts'
import type { Processor } from '../processor/processor.ts'
import { RECONCILED_DAYS } from './reconciliation.ts'

const KIND = 'events_undelivered'
/** Events that a flag lists. */
const MAX_LISTED = 200

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
  const subject = { kind: KIND, subjectType: 'processor', subjectId: config.PROCESSOR } as const
  await database.transaction(async (tx) => {
    const resolved = await lastResolvedFlag(tx, KIND, config.PROCESSOR)
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
