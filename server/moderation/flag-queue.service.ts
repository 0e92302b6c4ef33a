import { idParam } from '../../shared/schemas/common.ts'
import { decodeCursor, encodeCursor, type Page, pageOf } from '../platform/api/page.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { recordAudit } from './audit.service.ts'
import {
  countOpenOfMerchant,
  countResolved,
  type FlagFilter,
  findFlag,
  findFlags,
  findOpenFlag,
  markResolved,
} from './flag-queue.store.ts'
import type { FlagKind, NewFlag } from './flags.service.ts'
import type { FlagRow } from './flags.store.ts'

export type { FlagRow } from './flags.store.ts'

/** Newest first. Refuses a cursor that is not this list's with `validation_failed`. */
export async function listFlags(
  platform: Platform,
  query: FlagFilter & { limit: number; cursor?: string | undefined },
): Promise<Page<FlagRow>> {
  const before = decodeCursor(query.cursor, idParam)
  const rows = await findFlags(platform.database.reader, query, before, query.limit + 1)
  return pageOf(rows, query.limit, (last) => encodeCursor(last.id))
}

/** One flag, whatever has become of it. */
export function getFlag(platform: Platform, flagId: string): Promise<FlagRow | undefined> {
  return findFlag(platform.database.reader, flagId)
}

export interface FlagResolution {
  flagId: string
  /** The admin's user id, or `OPERATOR`. */
  actor: string
  /** What was found and done. */
  note: string
}

/**
 * Takes a flag off the queue; the same note again changes nothing. It only says that a person has looked: what the flag is about
 * is moved by that thing's own means. Refuses with `not_found`, and with `already_decided` when it was resolved with another note.
 */
export function resolveFlag(platform: Platform, resolution: FlagResolution): Promise<FlagRow> {
  const { flagId, actor, note } = resolution
  return platform.database.transaction(async (tx) => {
    const resolved = await markResolved(tx, flagId, note, platform.clock.now())
    if (!resolved) return resolvedBefore(tx, flagId, note)
    await recordAudit(platform, tx, {
      actor,
      action: 'flag.resolve',
      subjectType: 'flag',
      subjectId: flagId,
      reason: note,
      before: { status: 'open', kind: resolved.kind, about: resolved.subject_id },
      after: { status: 'resolved' },
    })
    return resolved
  })
}

async function resolvedBefore(tx: Tx, flagId: string, note: string): Promise<FlagRow> {
  const flag = await findFlag(tx, flagId)
  if (!flag) throw new Refusal('not_found', 'There is no such flag.')
  if (flag.note === note) return flag
  throw new Refusal('already_decided', 'This flag has been resolved with another note.')
}

/** What a flag is about. */
export type FlagSubject = Pick<NewFlag, 'kind' | 'subjectType' | 'subjectId'>

/** The open flag of this kind about this subject, if there is one. */
export function openFlagAbout(db: Queries, { kind, subjectType, subjectId }: FlagSubject) {
  return findOpenFlag(db, kind, subjectType, subjectId)
}

/** How many flags of a kind are open whose evidence names a merchant as `merchant_id`. */
export function openFlagCountOf(db: Queries, kind: FlagKind, merchantId: string): Promise<number> {
  return countOpenOfMerchant(db, kind, merchantId)
}

/** How many flags of a kind about one subject have been resolved so far. */
export function resolvedFlagCount(db: Queries, kind: FlagKind, subjectId: string): Promise<number> {
  return countResolved(db, kind, subjectId)
}

/** Resolves the open flag about something because it has been settled by what happened; whether there was one. */
export async function closeFlag(
  platform: Platform,
  tx: Tx,
  subject: FlagSubject,
  note: string,
): Promise<boolean> {
  const flag = await openFlagAbout(tx, subject)
  return flag !== undefined && (await markResolved(tx, flag.id, note, platform.clock.now())) !== undefined
}
