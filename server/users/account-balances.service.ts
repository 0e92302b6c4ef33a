import type { Paisa } from '../../shared/money.ts'
import { accountBalances } from '../ledger/ledger.service.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { findPeople, type PersonRow } from './users.store.ts'

/** One account of the journal with its owner's name. */
export interface OwnedBalance {
  account: string
  /** `null`: the platform's own. */
  owner: { id: string; email: string | null; displayName: string | null } | null
  /** Debits less credits. */
  balance: Paisa
  postings: number
}

const AT_ONCE = 500

/** The balances of every account, or of one user's, for the operator. */
export async function listBalances(platform: Platform, userId: string | null): Promise<OwnedBalance[]> {
  const { reader } = platform.database
  const accounts = await accountBalances(reader, userId)
  const ids = [...new Set(accounts.map((account) => account.owner_id))]
  const people = new Map<string, PersonRow>()
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    for (const person of await findPeople(reader, ids.slice(at, at + AT_ONCE))) people.set(person.id, person)
  }
  return accounts.map(({ account, owner_id: id, balance, postings }) => {
    const person = people.get(id)
    const owner = { id, email: person?.email ?? null, displayName: person?.display_name ?? null }
    return { account, owner: id === NIL_ID ? null : owner, balance, postings }
  })
}
