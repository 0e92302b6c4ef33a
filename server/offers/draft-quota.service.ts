import type { Tx } from '../platform/database/database.ts'
import { checkQuota } from '../users/users.service.ts'
import { countDrafts } from './offers.store.ts'

export const MAX_DRAFTS = 500

/** Refuses one draft too many with `quota_exceeded`. */
export function checkDraftQuota(tx: Tx, merchantId: string): Promise<void> {
  return checkQuota(tx, merchantId, {
    most: MAX_DRAFTS,
    count: () => countDrafts(tx, merchantId),
    detail: `At most ${MAX_DRAFTS} draft offers per account. Edit a draft or take one live instead of adding another.`,
  })
}
