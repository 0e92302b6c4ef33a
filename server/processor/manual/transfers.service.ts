import { randomBytes } from 'node:crypto'
import { type SqlBool, sql } from 'kysely'
import { type AuditRecord, recordAudit, recordAudits } from '../../flags/audit.service.ts'
import { Refusal } from '../../platform/api/refusal.ts'
import { toBase32 } from '../../platform/crypto/totp.ts'
import { inList } from '../../platform/database/bulk-values.ts'
import { dialectOf, type Tx, WriteConflict } from '../../platform/database/database.ts'
import { changeRow, changeRows, headProblem, lockRows } from '../../platform/database/protected-rows.ts'
import type { Platform } from '../../platform/platform.ts'
import type { AttemptKind } from '../attempt.entity.ts'
import { subjectOf } from '../attempts.service.ts'
import { type ConfirmationFacts, type ConfirmationVerdict, decideConfirmation } from './confirmation.rule.ts'
import { named, type TransferRow, transfersByReference, transfersWhere } from './transfers.store.ts'

export { openTransfers, sumOpenTransfers, type TransferRow, transfersNamed } from './transfers.store.ts'

/** What a person says about one transfer. */
export interface Confirmation extends ConfirmationFacts {
  kind: AttemptKind
  /** The transfer's number, or the id of its billing cycle or payout. */
  about: string
}

export interface Confirmed {
  verdict: ConfirmationVerdict
  /** As it is now; `null` for an unknown one. */
  transfer: TransferRow | null
  /** With `used_reference`, the transfer that has the reference. */
  holder: string | null
}

const ACTIONS = { invoice: 'manual.received', paid: 'manual.paid', failed: 'manual.failed' } as const

/**
 * Records what an admin says about transfers, each once and audited, and answers in their order. It moves no money: the event about a
 * recorded one does. Throws `TamperedRow` where one was changed outside of the service; then nothing is recorded.
 */
export function confirmTransfers(
  platform: Platform,
  actor: string,
  confirmations: readonly Confirmation[],
): Promise<Confirmed[]> {
  const { database, clock } = platform
  return database.transaction(async (tx) => {
    const names = confirmations.map(({ about }) => about)
    const rows = await lockRows(tx, 'manual_transfers', named(tx, names))
    const references = confirmations.flatMap(({ reference }) => reference ?? [])
    const holders = new Map(
      (await transfersByReference(tx, references)).map((row) => [row.bank_reference, row.number]),
    )
    const audits: AuditRecord[] = []
    const confirmed: Confirmed[] = []
    for (const confirmation of confirmations) {
      const { kind, about, outcome, reference, reason } = confirmation
      const transfer =
        rows.find((row) => row.kind === kind && (row.number === about || row.subject_id === about)) ?? null
      const holder = holders.get(reference ?? '') ?? null
      const verdict = decideConfirmation(transfer, holder, confirmation)
      confirmed.push({ verdict, transfer, holder })
      if (verdict !== 'record' || transfer === null) continue
      const change = { bank_reference: reference, reason, confirmed_by: actor, settled_at: clock.now() }
      await changeUnlessTaken(platform, tx, transfer, { state: outcome, ...change })
      if (reference !== null) holders.set(reference, transfer.number)
      audits.push({
        actor,
        action: ACTIONS[kind === 'invoice' ? kind : outcome],
        reason,
        ...subjectOf(kind, transfer.subject_id),
        before: { state: 'open' },
        after: {
          state: outcome,
          number: transfer.number,
          amount: transfer.amount,
          bank_reference: reference,
        },
      })
    }
    await recordAudits(platform, tx, audits)
    return confirmed
  })
}

/** Another transaction may give the reference to another transfer at this moment: then the whole is decided again. */
async function changeUnlessTaken(
  { database }: Platform,
  tx: Tx,
  transfer: TransferRow,
  change: Partial<TransferRow>,
): Promise<void> {
  try {
    await changeRow(tx, 'manual_transfers', transfer, change)
  } catch (error) {
    throw database.faultOf(error)?.kind === 'unique' ? new WriteConflict('a bank reference') : error
  }
}

/** The name of a new payout file. */
export function newFileName(): string {
  return `PF${toBase32(randomBytes(5))}`
}

/**
 * The open payouts that were not exported, or those of the given file, oldest first. Refuses with `conflict` when transfers were deleted or
 * replaced by older rows, since one that was paid could be paid again.
 */
export async function transfersToExport({ database: { reader }, keys }: Platform, file: string | null) {
  const problem = await headProblem(reader, keys, 'manual_transfers')
  if (problem !== null) {
    throw new Refusal(
      'conflict',
      `manual_transfers ${problem}. Run "affiliate ledger verify". No file was written.`,
    )
  }
  const isOfFile = file === null ? sql`file is null` : sql`file = ${file}`
  return transfersWhere(reader, sql<SqlBool>`state = 'open' and kind = 'payout' and ${isOfFile}`)
}

/**
 * Marks payouts as exported to a file, audited, and returns those that are now: one that was settled or written to another file meanwhile is
 * left out.
 */
export function markExported(
  platform: Platform,
  actor: string,
  file: string,
  ids: readonly string[],
): Promise<readonly TransferRow[]> {
  return platform.database.transaction(async (tx) => {
    const isFree = sql`state = 'open' and (file is null or file = ${file})`
    const condition = sql`id ${inList(dialectOf(tx), 'uuid', ids)} and ${isFree}`
    const locked = await lockRows(tx, 'manual_transfers', condition)
    if (locked.length === 0) return []
    const isAgain = locked.some((row) => row.file !== null)
    const rows = await changeRows(tx, 'manual_transfers', locked, (row) => ({
      file,
      exported_at: row.exported_at ?? platform.clock.now(),
    }))
    await recordAudit(platform, tx, {
      actor,
      action: 'manual.payout_file',
      subjectType: 'payout_file',
      subjectId: file,
      after: {
        again: isAgain,
        payouts: rows.length,
        amount: rows.reduce((sum, row) => sum + row.amount, 0),
      },
    })
    return rows
  })
}
