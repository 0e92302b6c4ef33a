import type { Tx } from '../platform/database.ts'
import { Refusal } from '../platform/refusal.ts'
import { lockUser } from './users.store.ts'

export interface Quota {
  /** How many objects an account may have. */
  most: number
  count: () => Promise<number>
  /** What is full, and what to do about it. */
  detail: string
}

/**
 * To be called in the transaction that adds an object of an account. It holds the account's row, so that calls at the
 * same moment are counted one after the other. Refuses with `quota_exceeded`; objects beyond the quota that exist
 * already stay.
 */
export async function checkQuota(tx: Tx, userId: string, { most, count, detail }: Quota): Promise<void> {
  await lockUser(tx, userId)
  if ((await count()) >= most) throw new Refusal('quota_exceeded', detail)
}

/** Holds an account's row until the transaction ends, so that calls of one account come one after the other. */
export function holdAccount(tx: Tx, userId: string): Promise<void> {
  return lockUser(tx, userId)
}
