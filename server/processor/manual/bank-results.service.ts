import { inBatches } from '../../platform/database/batches.ts'
import type { Queries } from '../../platform/database/database.ts'
import type { BankRow } from './bank-file.ts'
import { type ResultRow, readResultRow } from './bank-rows.rule.ts'
import { type Confirmation, transfersNamed } from './transfers.service.ts'

const BATCH = 500
/** Rows that are listed of each kind. */
export const MOST_LISTED = 20

/** What a row leads to before it is applied. `contradiction`: an earlier row says something else about the same payout. */
export type RowProblem = 'unknown' | 'unreadable' | 'contradiction'

export interface ListedRow {
  line: number
  number: string | null
  why: string
}

export interface BankResults {
  rows: number
  /** At most one of each payout. */
  confirmations: (Confirmation & { line: number })[]
  /** Rows that repeat an earlier one. */
  duplicates: number
  /** Payouts that the bank has not decided on. */
  undecided: number
  problems: Record<RowProblem, { count: number; listed: ListedRow[] }>
}

/**
 * Reads the whole of a result file before anything of it is applied. Needs memory for the payouts that it names and are ours, not for its
 * rows. A payout about which two rows disagree is left out.
 */
export async function readBankResults(db: Queries, rows: AsyncIterable<BankRow>): Promise<BankResults> {
  const none = () => ({ count: 0, listed: [] as ListedRow[] })
  const problems: BankResults['problems'] = { unknown: none(), unreadable: none(), contradiction: none() }
  const results = { rows: 0, duplicates: 0, undecided: 0 }
  const found = new Map<string, FoundRow | null>()
  const note = (kind: RowProblem, row: ListedRow) => {
    problems[kind].count += 1
    if (problems[kind].listed.length < MOST_LISTED) problems[kind].listed.push(row)
  }
  const take = async (batch: readonly FoundRow[]) => {
    const transfers = await transfersNamed(
      db,
      batch.map(({ result }) => result.number),
    )
    const ours = new Set(transfers.filter(({ kind }) => kind === 'payout').map(({ number }) => number))
    for (const { line, result } of batch) {
      const { number } = result
      const former = found.get(number)
      if (!ours.has(number)) note('unknown', { line, number, why: 'no payout has this number' })
      else if (former === undefined) found.set(number, { line, result })
      else if (former !== null && JSON.stringify(former.result) === JSON.stringify(result))
        results.duplicates += 1
      else {
        note('contradiction', { line, number, why: 'another line says something else about this payout' })
        found.set(number, null)
      }
    }
  }
  for await (const batch of inBatches(rows, BATCH)) {
    results.rows += batch.length
    const settled: FoundRow[] = []
    for (const { line, cell } of batch) {
      const result = readResultRow(cell)
      if (result.kind === 'undecided') results.undecided += 1
      else if (result.kind === 'unreadable') note('unreadable', { line, number: null, why: result.why })
      else settled.push({ line, result })
    }
    await take(settled)
  }
  const confirmations = [...found.values()].flatMap((one) => (one ? [confirmationOf(one)] : []))
  return { ...results, confirmations, problems }
}

interface FoundRow {
  line: number
  result: Extract<ResultRow, { kind: 'paid' | 'failed' }>
}

function confirmationOf({ line, result }: FoundRow) {
  const { number: about, amount } = result
  const common = { line, kind: 'payout' as const, about, amount }
  return result.kind === 'paid'
    ? { ...common, outcome: 'paid' as const, reference: result.reference, reason: null }
    : { ...common, outcome: 'failed' as const, reference: null, reason: result.reason }
}
