import { type Selectable, sql } from 'kysely'
import { countOf, inList, newestFirst } from '../../../platform/database/bulk-values.ts'
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
  const insert = tx
    .insertInto('mails')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
  return (await insert.returning('id').execute()).length > 0
}

export type Recipient = Awaited<ReturnType<typeof findRecipients>>[number]

export function findRecipients(db: Queries, userIds: readonly string[]) {
  return db
    .selectFrom('users')
    .select(['id', 'email', 'display_name', 'role', 'email_verified_at'])
    .where(sql<boolean>`id ${inList(dialectOf(db), 'uuid', userIds)}`)
    .execute()
}

/** How many mails of a kind an address was written since `since` (epoch ms). */
export function countMails(db: Queries, address: string, kind: string, since: number) {
  const toAddress = db.selectFrom('mails').where('address', '=', address)
  return countOf(toAddress.where('created_at', '>', since).where('kind', '=', kind))
}

export interface MailFilter {
  state?: MailState | undefined
  userId?: string | undefined
}

export function findMails(
  db: Queries,
  { state, userId }: MailFilter,
  page: { before: string | null; limit: number },
) {
  let mails = db.selectFrom('mails').selectAll()
  if (state !== undefined) mails = mails.where('state', '=', state)
  if (userId !== undefined) mails = mails.where('user_id', '=', userId)
  return newestFirst(mails, page)
}

export function findMail(db: Queries, id: string) {
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
