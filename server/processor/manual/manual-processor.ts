import { createHash } from 'node:crypto'
import { type SqlBool, sql } from 'kysely'
import { CURRENCY, type Paisa } from '../../../shared/money.ts'
import { toBase32 } from '../../platform/crypto/totp.ts'
import { rowProblem } from '../../platform/database/protected-rows.ts'
import type { Platform } from '../../platform/platform.ts'
import type { AttemptKind } from '../attempt.entity.ts'
import { unavailable } from '../http-exchange.ts'
import {
  type CallOutcome,
  type LookupKeys,
  type LookupOutcome,
  PAYOUT_UNITS,
  type Processor,
} from '../processor.ts'
import { insertTransfer, transfersWhere } from './transfers.store.ts'

const PREFIX = { invoice: 'INV', payout: 'PAY' } as const

/** Made from the attempt's id, so that each try of a call gives the same. Short enough for the references of all banks. */
function numberOf(kind: AttemptKind, attemptId: string): string {
  const hash = createHash('sha256').update(attemptId).digest()
  return PREFIX[kind] + toBase32(hash.subarray(0, 8)).slice(0, 12)
}

/**
 * A processor whose work people do: an invoice is a number for a bank transfer, a payout waits in a list. What it holds is in
 * `manual_transfers`, in the service's database; an admin records its outcome, with the commands `affiliate manual`.
 */
export function createManualProcessor(platform: Platform): Processor & { close(): Promise<void> } {
  async function create(
    kind: AttemptKind,
    { attemptId: id, reference: subject_id, amount }: { attemptId: string; reference: string; amount: Paisa },
  ): Promise<CallOutcome> {
    const number = numberOf(kind, id)
    const transfer = { id, kind, subject_id, number, amount, created_at: platform.clock.now() }
    const isThere = await platform.database.transaction((tx) => insertTransfer(tx, transfer))
    if (isThere) return { kind: 'created', id: number, hostedUrl: null }
    return { kind: 'refused', status: 409, detail: `this ${kind} has a transfer of another call` }
  }

  async function find(kind: AttemptKind, { reference }: LookupKeys): Promise<LookupOutcome> {
    const { database, keys } = platform
    const ofSubject = sql<SqlBool>`kind = ${kind} and subject_id = ${reference}`
    const rows = await transfersWhere(database.reader, ofSubject)
    const forged = rows.some((row) => rowProblem(keys, 'manual_transfers', row) !== null)
    if (forged) return unavailable('its record was changed in the database')
    const items = rows.map(({ number: id, amount, state: status }) => {
      return { id, reference, amount, currency: CURRENCY, status }
    })
    return { kind: 'found', items }
  }

  return {
    payoutUnit: PAYOUT_UNITS.manual,
    createInvoice: (call) => create('invoice', call),
    createPayout: (call) => create('payout', call),
    findInvoices: (keys) => find('invoice', keys),
    findPayouts: (keys) => find('payout', keys),
    close: async () => {},
  }
}
