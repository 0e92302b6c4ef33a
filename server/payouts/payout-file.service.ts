import type { Paisa } from '../../shared/money.ts'
import { raiseFlag } from '../flags/flags.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import { requireAuthentic } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { listAttempts, subjectOf } from '../processor/attempts.service.ts'
import { markExported, type TransferRow, transfersToExport } from '../processor/manual/transfers.service.ts'
import { missingDestinations, openDestination } from '../users/sealed-accounts.service.ts'
import { isSuspended } from '../users/users.service.ts'
import { assertPayoutBacked, isPayoutSettled } from './payout-checks.service.ts'
import { findPayout } from './payouts.store.ts'

/** One payout of a file for the bank. */
export interface PayoutFileRow {
  payoutId: string
  /** What the bank's result names. */
  number: string
  /** Paisa. */
  amount: Paisa
  iban: string
  account_title: string
}

export interface LeftOut {
  payoutId: string
  number: string
  why: string
}

export interface PayoutFile {
  rows: PayoutFileRow[]
  leftOut: LeftOut[]
}

/**
 * The payouts that the manual processor holds and no file has, for a file that the caller writes; with `again`, those of a former file that
 * have no outcome yet. They are marked as exported in a transaction that has committed when this returns, so that a caller that dies
 * before it has written them loses nothing: `again` gives the same. Each is checked as a call to a processor is; one that does not agree
 * with the journal, whose destination was changed in the database, or whose creator is suspended is left out. Refuses with `conflict`
 * where rows were deleted in the database, and with `not_found` where the former file has none left.
 */
export async function exportPayouts(
  platform: Platform,
  { actor, name, again = false }: { actor: string; name: string; again?: boolean },
): Promise<PayoutFile> {
  const missing = await missingDestinations(platform, platform.database.reader)
  if (missing !== null) {
    throw new Refusal(
      'conflict',
      `payout_destinations ${missing}. Run "affiliate ledger verify". No file was written.`,
    )
  }
  const transfers = await transfersToExport(platform, again ? name : null)
  if (again && transfers.length === 0) {
    throw new Refusal('not_found', `No payout of file ${name} waits for its outcome.`)
  }
  const rows = new Map<string, PayoutFileRow>()
  const leftOut: LeftOut[] = []
  for (const transfer of transfers) {
    const { id, subject_id: payoutId, number, amount } = transfer
    const prepared = await prepareRow(platform, transfer)
    if (typeof prepared === 'string') leftOut.push({ payoutId, number, why: prepared })
    else rows.set(id, { payoutId, number, amount, ...prepared })
  }
  if (rows.size === 0) return { rows: [], leftOut }
  const marked = await markExported(platform, actor, name, [...rows.keys()])
  return { rows: marked.flatMap(({ id }) => rows.get(id) ?? []), leftOut }
}

/** The account that a payout goes to, or why it goes into no file. */
async function prepareRow(platform: Platform, transfer: TransferRow) {
  const { keys, database } = platform
  const { reader } = database
  const { subject_id: payoutId, amount } = transfer
  const payout = await findPayout(reader, payoutId)
  if (!payout) return 'there is no such payout'
  const { creator_id: creatorId } = payout
  if ((await isSuspended(reader, [creatorId])).size > 0) return 'the creator is suspended'
  try {
    requireAuthentic(keys, 'manual_transfers', transfer)
    const attempt = (await listAttempts(reader, 'payout', payoutId)).find(({ id }) => id === transfer.id)
    if (!attempt) return 'there is no call that ordered it'
    requireAuthentic(keys, 'processor_attempts', attempt)
    await assertPayoutBacked(platform, payoutId, amount)
    if (await isPayoutSettled(platform, payoutId)) return 'the journal has its outcome already'
    const { destination_id }: { destination_id: string } = JSON.parse(attempt.request)
    const destination = await openDestination(platform, creatorId, destination_id, payout.created_at)
    return destination ?? 'the payout destination has not come into effect'
  } catch (error) {
    if (error instanceof UnknownKeyError) return `its row was ${error.message}`
    if (!(error instanceof IntegrityError)) throw error
    const { message: problem } = error
    await database.transaction((tx) =>
      raiseFlag(platform, tx, {
        kind: 'integrity_violation',
        ...subjectOf('payout', payoutId),
        summary: `The payout was written to no file: someone writes to the database. Run "affiliate ledger verify --full".`,
        evidence: { number: transfer.number, problem },
      }),
    )
    return problem
  }
}
