import { type Selectable, sql } from 'kysely'
import { countOf, inList } from '../../../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../../../platform/database/database.ts'
import type { Schema } from '../../../platform/database/schema.ts'
import { LeaseQueue } from '../../../platform/queue/lease-queue.ts'
import type { MailState } from './mail.entity.ts'

export type MailRow = Selectable<Schema['mails']>

/** The longest wait for the next attempt, ms. */
export const MAX_DELAY_MS = 4 * 3_600_000

/** Mails to be sent. */
export const MAIL_QUEUE = new LeaseQueue<MailRow>({
  name: 'mails',
  isOpen: sql`state = 'queued'`,
  dueAt: 'next_try_at',
  leaseUntil: 'lease_until',
  attempts: 'attempts',
  maxDelayMs: MAX_DELAY_MS,
})

/** Adds a mail unless there is one about the same event; returns whether it did. */
export async function insertMail(tx: Tx, row: MailRow): Promise<boolean> {
  const inserted = await tx
    .insertInto('mails')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

export type Recipient = Pick<
  Selectable<Schema['users']>,
  'id' | 'email' | 'display_name' | 'role' | 'email_verified_at'
>

export function findRecipients(db: Queries, userIds: readonly string[]): Promise<Recipient[]> {
  return db
    .selectFrom('users')
    .select(['id', 'email', 'display_name', 'role', 'email_verified_at'])
    .where(sql<boolean>`id ${inList(dialectOf(db), 'uuid', userIds)}`)
    .execute()
}

/** How many mails of a kind an address was written since `since` (epoch ms). */
export function countMails(db: Queries, address: string, kind: string, since: number): Promise<number> {
  return countOf(
    db
      .selectFrom('mails')
      .where('address', '=', address)
      .where('created_at', '>', since)
      .where('kind', '=', kind),
  )
}

/** The mails in a state before the id `before`, newest first. */
export function findMails(
  db: Queries,
  { state, before, limit }: { state?: MailState | undefined; before: string | null; limit: number },
): Promise<MailRow[]> {
  let query = db.selectFrom('mails').selectAll().orderBy('id', 'desc').limit(limit)
  if (state) query = query.where('state', '=', state)
  if (before !== null) query = query.where('id', '<', before)
  return query.execute()
}

export function findMail(db: Queries, id: string): Promise<MailRow | undefined> {
  return db.selectFrom('mails').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Removes mails that were sent or failed before `before` (epoch ms). */
export async function deleteFinished(tx: Tx, before: number): Promise<void> {
  await tx.deleteFrom('mails').where('finished_at', '<', before).execute()
}

export async function optOutsOf(db: Queries, userId: string): Promise<string[]> {
  const rows = await db.selectFrom('mail_opt_outs').select('event').where('user_id', '=', userId).execute()
  return rows.map(({ event }) => event)
}

export async function addOptOut(tx: Tx, row: Selectable<Schema['mail_opt_outs']>): Promise<void> {
  await tx
    .insertInto('mail_opt_outs')
    .values(row)
    .onConflict((conflict) => conflict.columns(['user_id', 'event']).doNothing())
    .execute()
}

export async function removeOptOut(tx: Tx, userId: string, event: string): Promise<void> {
  await tx.deleteFrom('mail_opt_outs').where('user_id', '=', userId).where('event', '=', event).execute()
}
