import type { Selectable } from 'kysely'
import type { Role } from '../../shared/schemas/common.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'

/** Accounts after the id `after` and before `to`, oldest first. */
export function accountsBetween(
  db: Queries,
  after: string,
  to: string,
  limit: number,
): Promise<{ id: string; email: string }[]> {
  return db
    .selectFrom('users')
    .select(['id', 'email'])
    .where('id', '>', after)
    .where('id', '<', to)
    .orderBy('id')
    .limit(limit)
    .execute()
}

export interface MailboxRow {
  user_id: string
  fingerprint: string
}

export async function insertMailboxes(tx: Tx, rows: readonly MailboxRow[]): Promise<void> {
  if (rows.length === 0) return
  await tx
    .insertInto('mailboxes')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Mailboxes of accounts after the id `after`, in the order of their ids, with the accounts' addresses. */
export function mailboxesAfter(
  db: Queries,
  after: string | null,
  limit: number,
): Promise<(MailboxRow & { email: string })[]> {
  return db
    .selectFrom('mailboxes')
    .innerJoin('users', 'users.id', 'mailboxes.user_id')
    .select(['mailboxes.user_id', 'mailboxes.fingerprint', 'users.email'])
    .$if(after !== null, (query) => query.where('mailboxes.user_id', '>', after ?? ''))
    .orderBy('mailboxes.user_id')
    .limit(limit)
    .execute()
}

export async function setMailboxFingerprint(tx: Tx, { user_id, fingerprint }: MailboxRow): Promise<void> {
  await tx.updateTable('mailboxes').set({ fingerprint }).where('user_id', '=', user_id).execute()
}

/** Everybody behind these mailboxes. */
export function holdersOfMailboxes(
  db: Queries,
  fingerprints: readonly string[],
): Promise<(MailboxRow & { role: Role })[]> {
  if (fingerprints.length === 0) return Promise.resolve([])
  return db
    .selectFrom('mailboxes')
    .innerJoin('users', 'users.id', 'mailboxes.user_id')
    .select(['mailboxes.user_id', 'mailboxes.fingerprint', 'users.role'])
    .where('mailboxes.fingerprint', 'in', fingerprints)
    .orderBy('mailboxes.user_id')
    .execute()
}

export type IbanRow = Selectable<Schema['payout_destinations']>

/** Payout destinations after the id `after` and before `to`, oldest first. */
export function destinationsBetween(
  db: Queries,
  after: string,
  to: string,
  limit: number,
): Promise<IbanRow[]> {
  return db
    .selectFrom('payout_destinations')
    .selectAll()
    .where('id', '>', after)
    .where('id', '<', to)
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** Every destination with one of these IBANs, whoever gave it, oldest first. */
export function destinationsWithIban(db: Queries, fingerprints: readonly string[]): Promise<IbanRow[]> {
  if (fingerprints.length === 0) return Promise.resolve([])
  return db
    .selectFrom('payout_destinations')
    .selectAll()
    .where('iban_fingerprint', 'in', fingerprints)
    .orderBy('id')
    .execute()
}
