import type { Queries } from '../platform/database/database.ts'
import type { AttemptKind } from './attempt.entity.ts'
import { listAttempts } from './attempts.service.ts'
import type { OurRecord, Standing } from './reconcile.rule.ts'

/** Which billing cycles or payouts are compared with the processor's records. Times in epoch ms. */
export interface RecordFilter {
  /** Settled ones from this time on; unsettled ones always. */
  since: number
  /** Changes after this time are left for the next run: the processor's event may still be on its way. */
  quietSince: number
  /** Ids that are compared whatever their state. */
  always: readonly string[]
}

/** A billing cycle or payout before its call's outcome is looked up. `standing` null: the processor has no id for it yet. */
export interface RecordRow {
  id: string
  amount: number
  processorId: string | null
  standing: Exclude<Standing, 'unsent' | 'refused'> | null
}

/** Our side of a reconciliation. What has no standing is `refused` or `unsent`, as its last attempt says. */
export async function recordsOf(
  db: Queries,
  kind: AttemptKind,
  rows: readonly RecordRow[],
): Promise<OurRecord[]> {
  const records: OurRecord[] = []
  for (const row of rows) {
    const standing = row.standing ?? (await unsettledStanding(db, kind, row.id))
    records.push({ kind, id: row.id, standing, amount: row.amount, processorId: row.processorId })
  }
  return records
}

async function unsettledStanding(db: Queries, kind: AttemptKind, subjectId: string): Promise<Standing> {
  const attempt = (await listAttempts(db, kind, subjectId)).at(-1)
  return attempt?.state === 'refused' ? 'refused' : 'unsent'
}
