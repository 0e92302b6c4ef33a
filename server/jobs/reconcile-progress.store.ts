import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'

/** How far a reconciliation has come: invoices first, then payouts, each by id. */
export interface ReconcileProgress {
  kind: 'invoice' | 'payout'
  after: string
}

export const FROM_THE_START: ReconcileProgress = { kind: 'invoice', after: NIL_ID }

/** Runs, one after the other, that ended because the processor gave no answer. */
export interface UnansweredStreak {
  runs: number
  /** Epoch ms of the first of them. */
  since: number
  /** What it gave no answer about first. */
  first: { kind: ReconcileProgress['kind']; id: string }
}

const PLACE = 'reconciliation'
const STREAK = 'reconciliation_unanswered'

/** `null`: none has been interrupted. */
export function readProgress(platform: Platform): Promise<ReconcileProgress | null> {
  return read<ReconcileProgress>(platform, PLACE)
}

export function saveProgress(platform: Platform, progress: ReconcileProgress | null): Promise<void> {
  return save(platform, PLACE, progress)
}

/** `null`: the last run was answered. */
export function readStreak(platform: Platform): Promise<UnansweredStreak | null> {
  return read<UnansweredStreak>(platform, STREAK)
}

export function saveStreak(platform: Platform, streak: UnansweredStreak | null): Promise<void> {
  return save(platform, STREAK, streak)
}

async function read<Kept>(platform: Platform, name: string): Promise<Kept | null> {
  const row = await platform.database.reader
    .selectFrom('watermarks')
    .select('value')
    .where('name', '=', name)
    .executeTakeFirst()
  return row && row.value !== '' ? JSON.parse(row.value) : null
}

async function save(platform: Platform, name: string, kept: object | null): Promise<void> {
  const value = kept === null ? '' : JSON.stringify(kept)
  await platform.database.transaction((tx) =>
    tx
      .insertInto('watermarks')
      .values({ name, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
      .execute(),
  )
}
