import type { Paisa } from '../../shared/money.ts'
import { accountBalances } from '../ledger/ledger.service.ts'
import type { Database } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { findUser } from '../users/users.service.ts'
import { findPeople, type PersonRow } from '../users/users.store.ts'

/** One account of the journal with its owner's name. */
export interface OwnedBalance {
  account: string
  /** `null`: the platform's own. */
  owner: { id: string; email: string | null; displayName: string | null } | null
  /** Debits less credits. */
  balance: Paisa
  postings: number
}

const BATCH_SIZE = 500

/** The balances of every account, or of one user's, for the operator. */
export async function listBalances(platform: Platform, userId: string | null): Promise<OwnedBalance[]> {
  const { reader } = platform.database
  const accounts = await accountBalances(reader, userId)
  const ids = [...new Set(accounts.map((account) => account.owner_id))]
  const people = new Map<string, PersonRow>()
  for (let at = 0; at < ids.length; at += BATCH_SIZE) {
    for (const person of await findPeople(reader, ids.slice(at, at + BATCH_SIZE)))
      people.set(person.id, person)
  }
  return accounts.map(({ account, owner_id: id, balance, postings }) => {
    const person = people.get(id)
    const owner = { id, email: person?.email ?? null, displayName: person?.display_name ?? null }
    return { account, owner: id === NIL_ID ? null : owner, balance, postings }
  })
}

/** The owner of the accounts of a statement. */
export interface AccountHolder {
  id: string
  /** `null`: the platform itself. */
  user: { email: string; displayName: string; role: string } | null
}

/** The user with this id or e-mail address, or the platform for `platform`. Refuses with `not_found`. */
export async function findAccountHolder(database: Database, text: string): Promise<AccountHolder> {
  if (text.trim().toLowerCase() === 'platform') return { id: NIL_ID, user: null }
  const { id, email, display_name: displayName, role } = await findUser({ database }, text)
  return { id, user: { email, displayName, role } }
}
