import { type AccountSummary, readStatement, type StatementReader } from '../ledger/statement.service.ts'
import type { Database } from '../platform/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import { findUser } from './users.service.ts'

/** Who holds the accounts of a statement. */
export interface AccountHolder {
  id: string
  /** `null`: the platform itself. */
  user: { email: string; displayName: string; role: string } | null
}

/** Whom an operator means by an id, an e-mail address or the word platform. Refuses with `not_found`. */
export async function findAccountHolder(database: Database, text: string): Promise<AccountHolder> {
  if (text.trim().toLowerCase() === 'platform') return { id: NIL_ID, user: null }
  const { id, email, displayName, role } = await findUser({ database }, text)
  return { id, user: { email, displayName, role } }
}

/** The holder's accounts over a period (epoch ms, `to` exclusive), entry by entry. */
export function readAccountStatement(
  database: Database,
  holder: AccountHolder,
  period: { from: number; to: number },
  reader: StatementReader,
): Promise<AccountSummary[]> {
  return readStatement(database, { ownerId: holder.id, ...period }, reader)
}
