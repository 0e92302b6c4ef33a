import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'

/** How far a reconciliation has come: invoices first, then payouts, each by id. */
export interface ReconcileProgress {
  kind: 'invoice' | 'payout'
  after: string
}

export const FROM_THE_START: ReconcileProgress = { kind: 'invoice', after: NIL_ID }

const NAME = 'reconciliation'

/** `null`: none has been interrupted. */
export async function readProgress(platform: Platform): Promise<ReconcileProgress | null> {
  const row = await platform.database.reader
    .selectFrom('watermarks')
    .select('value')
    .where('name', '=', NAME)
    .executeTakeFirst()
  return row && row.value !== '' ? JSON.parse(row.value) : null
}

export async function saveProgress(platform: Platform, progress: ReconcileProgress | null): Promise<void> {
  const value = progress === null ? '' : JSON.stringify(progress)
  await platform.database.transaction((tx) =>
    tx
      .insertInto('watermarks')
      .values({ name: NAME, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
      .execute(),
  )
}
