import { hash } from 'node:crypto'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { rowProblem } from '../platform/database/protected-rows.ts'
import type { BodyRow, EventRow } from './inbox.store.ts'

/** The reason of an event that is not the one that intake sealed. */
export const NOT_AS_RECEIVED = 'integrity_violation'

/**
 * Why an event is not the one that intake verified and sealed; `null` when it is. `bodyHash`: of the stored body, SHA-256 in hex; `null`
 * when it was removed or not loaded.
 */
export function eventProblem(keys: AppKeys, row: EventRow, bodyHash: string | null): string | null {
  const problem = rowProblem(keys, 'inbound_events', row)
  if (problem !== null) return problem
  return bodyHash === null || bodyHash === row.body_hash ? null : 'its body is not the one that was received'
}

/** SHA-256 of a raw body as it came, hex. */
export function bodyHashOf({ body, encoding }: Pick<BodyRow, 'body' | 'encoding'>): string {
  return hash('sha256', encoding === 'utf8' ? body : Buffer.from(body, encoding), 'hex')
}
