import { type SqlBool, sql } from 'kysely'
import { CURRENCY, formatMoney } from '../../../shared/money.ts'
import { recordAudit } from '../../flags/audit.service.ts'
import { openFlags } from '../../flags/flags.service.ts'
import { noteAgreement, noteDifference } from '../../flags/reconciliation-flags.service.ts'
import { isoTime } from '../../platform/clock.ts'
import { inBatches } from '../../platform/database/batches.ts'
import type { Queries } from '../../platform/database/database.ts'
import type { Platform } from '../../platform/platform.ts'
import { subjectOf } from '../attempts.service.ts'
import type { BankRow } from './bank-file.ts'
import {
  compareWithStatement,
  readStatementRow,
  type StatementDifference,
  type StatementRow,
} from './bank-rows.rule.ts'
import { type TransferRow, transfersByReference, transfersNamed, transfersWhere } from './transfers.store.ts'

const BATCH = 500
const KIND = 'bank_statement_difference'

export interface FoundDifference {
  transfer: TransferRow
  differences: StatementDifference[]
  /** Lines of the file. */
  lines: number[]
  /** `known`: a person has already resolved the same difference. */
  flag: 'raised' | 'refreshed' | 'known'
}

export interface StatementOutcome {
  rows: number
  /** Rows about nothing of ours. */
  others: number
  /** Transfers that were compared. */
  compared: number
  differing: FoundDifference[]
}

interface Period {
  /** Confirmations from then on must stand in the statement, epoch ms. */
  since: number
  /** Those from then on need not, epoch ms. */
  until: number
}

type Line = StatementRow & { line: number }

/**
 * Compares a bank statement with the confirmations, and flags every difference: it moves no money. A row belongs to the transfer whose
 * number it names, else to the one whose bank reference it has. Reads the whole statement first; needs memory for the transfers, not for the rows.
 */
export async function compareStatement(
  platform: Platform,
  actor: string,
  rows: AsyncIterable<BankRow>,
  { since, until }: Period,
): Promise<StatementOutcome> {
  const { reader } = platform.database
  const found = new Map<string, { transfer: TransferRow; lines: Line[] }>()
  const counts = { rows: 0, others: 0 }
  for await (const batch of inBatches(rows, BATCH)) {
    counts.rows += batch.length
    const lines = batch.map(({ line, cell }): Line => ({ ...readStatementRow(cell), line }))
    const transferOf = await transfersOf(reader, lines)
    for (const line of lines) {
      const transfer = transferOf(line)
      if (!transfer) {
        counts.others += 1
        continue
      }
      const entry = found.get(transfer.id) ?? { transfer, lines: [] }
      entry.lines.push(line)
      found.set(transfer.id, entry)
    }
  }
  const inPeriod = sql<SqlBool>`state = 'paid' and settled_at >= ${since} and settled_at < ${until}`
  for (const transfer of await transfersWhere(reader, inPeriod)) {
    if (!found.has(transfer.id)) found.set(transfer.id, { transfer, lines: [] })
  }
  const flagged = new Set((await openFlags(reader, KIND)).map(({ subject_id }) => subject_id))
  const differing: FoundDifference[] = []
  for (const { transfer, lines } of found.values()) {
    const difference = await noteResult(platform, transfer, lines, flagged.has(transfer.subject_id))
    if (difference) differing.push(difference)
  }
  await platform.database.transaction((tx) =>
    recordAudit(platform, tx, {
      actor,
      action: 'manual.reconcile',
      subjectType: 'processor',
      subjectId: 'manual',
      after: {
        since: isoTime(since),
        until: isoTime(until),
        ...counts,
        compared: found.size,
        differing: differing.length,
      },
    }),
  )
  return { ...counts, compared: found.size, differing }
}

async function transfersOf(db: Queries, lines: readonly StatementRow[]) {
  const named = await transfersNamed(
    db,
    lines.flatMap(({ numbers }) => numbers),
  )
  const referred = await transfersByReference(
    db,
    lines.flatMap(({ reference }) => reference ?? []),
  )
  const byNumber = new Map(named.map((row) => [row.number, row]))
  const byReference = new Map(referred.map((row) => [row.bank_reference, row]))
  return ({ numbers, reference }: StatementRow): TransferRow | undefined => {
    const number = numbers.find((one) => byNumber.has(one))
    return number === undefined ? byReference.get(reference) : byNumber.get(number)
  }
}

/** Flags the differences of one transfer; where there are none, notes that on the flag that it has. */
async function noteResult(
  platform: Platform,
  transfer: TransferRow,
  lines: readonly Line[],
  flagged: boolean,
): Promise<FoundDifference | null> {
  const { kind, subject_id, number, amount, state, bank_reference } = transfer
  const differences = compareWithStatement({ kind, state, amount, rows: lines })
  if (differences.length === 0 && !flagged) return null
  const subject = { kind: KIND, ...subjectOf(kind, subject_id) } as const
  return platform.database.transaction(async (tx) => {
    if (differences.length === 0) {
      await noteAgreement(platform, tx, subject)
      return null
    }
    const flag = await noteDifference(platform, tx, {
      ...subject,
      summary: `The bank statement differs from what was confirmed about ${number}: ${describeStatement(differences)}.`,
      differences,
      ours: { state, amount: formatMoney(amount), currency: CURRENCY, number, bank_reference },
      theirs: lines.map((line) => ({
        amount: line.amount === null ? null : formatMoney(line.amount),
        direction: line.isOut === null ? null : line.isOut ? 'out' : 'in',
        reference: line.reference,
      })),
    })
    return { transfer, differences, lines: lines.map(({ line }) => line), flag }
  })
}

const TEXTS: Record<StatementDifference, string> = {
  not_in_statement: 'confirmed, and not in the statement',
  amount_differs: 'another amount in the statement',
  twice: 'more than once in the statement',
  came_back: 'the money came back',
  not_confirmed: 'in the statement, and not confirmed',
  failed_here: 'in the statement, and confirmed as failed',
}

/** The differences as a text for an operator. */
export function describeStatement(differences: readonly StatementDifference[]): string {
  return differences.map((difference) => TEXTS[difference]).join(', ')
}
