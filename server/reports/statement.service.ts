import type { Paisa } from '../../shared/money.ts'
import { cyclePeriodsOf } from '../billing/billing.service.ts'
import type { Period } from '../billing/billing-period.rule.ts'
import { type CreditName, creditNamesOf } from '../billing/credits.service.ts'
import { ACCOUNTS, type Account, type EntryKind } from '../ledger/entries.rule.ts'
import { type Database, type Queries, readSnapshot } from '../platform/database/database.ts'
import { type SaleName, saleNamesOf } from '../sales/sales.service.ts'
import {
  balancesBefore,
  countPostings,
  readPostings,
  type StatementPeriod,
  type StatementRow,
} from './statement.store.ts'

export { type AccountBalance, accountBalances } from '../ledger/ledger.service.ts'

/** Whose accounts, and from which moment to before which. */
interface StatementRequest extends StatementPeriod {
  ownerId: string
}

export interface StatementEntry extends StatementRow {
  /** What people call the sale, credit or cycle; `null` for a payout, which has no other name than its id. */
  sale: SaleName | null
  credit: CreditName | null
  cycle: Period | null
  /** Of the account behind this entry. */
  balance: Paisa
}

export interface AccountSummary {
  account: Account
  opening: Paisa
  debits: Paisa
  credits: Paisa
  closing: Paisa
}

/** Takes a statement as it is read: what it opens with, then its entries in the journal's order. */
interface StatementReader {
  /** `balance`: debits less credits. */
  opening(accounts: { account: Account; balance: Paisa }[]): void
  entry(entry: StatementEntry): void
}

/**
 * Reads one owner's accounts over a period: what they stood at, each entry with the balance behind it, and what they came
 * to, all of one moment however long it takes. Throws when the sum does not come out at what the journal says.
 * Memory holds one page of entries, however many there are.
 */
export function readStatement(
  database: Database,
  request: StatementRequest,
  reader: StatementReader,
): Promise<AccountSummary[]> {
  return readSnapshot(database, async (db) => {
    const opening = await balancesBefore(db, request.ownerId, request.from)
    const closingOf = await balancesBefore(db, request.ownerId, request.to)
    // In the order in which money passes through them.
    const accounts = ACCOUNTS.filter((account) => opening.has(account) || closingOf.has(account))
    reader.opening(accounts.map((account) => ({ account, balance: opening.get(account) ?? 0 })))
    const sums = new Map(
      accounts.map((account) => {
        const balance = opening.get(account) ?? 0
        return [account, { account, opening: balance, debits: 0, credits: 0, closing: balance }]
      }),
    )
    for await (const rows of pages(db, request)) {
      const names = await namesOf(db, rows)
      for (const row of rows) {
        const { subject_id: id } = row
        reader.entry({
          ...row,
          sale: names.sales.get(id) ?? null,
          credit: names.credits.get(id) ?? null,
          cycle: names.cycles.get(id) ?? null,
          balance: addTo(sums, row),
        })
      }
    }
    const summaries = [...sums.values()]
    // Two ways to one figure: added up entry by entry, and the database's own sum.
    for (const { account, opening, debits, credits, closing } of summaries) {
      const journal = closingOf.get(account) ?? 0
      if (opening + debits - credits === closing && closing === journal) continue
      throw new Error(
        `the statement of ${request.ownerId} does not tie: ${account} comes to ${closing}, the journal says ${journal}`,
      )
    }
    return summaries
  })
}

function addTo(sums: Map<Account, AccountSummary>, { account, amount }: StatementRow): Paisa {
  const sum = sums.get(account)
  if (!sum) throw new Error(`the journal's own sum leaves out account ${account}`)
  if (amount > 0) sum.debits += amount
  else sum.credits -= amount
  sum.closing += amount
  return sum.closing
}

/** About as many entries of an owner as an index by owner is of use for. */
const FEW = 5000
/** As many parameters has the question for the names of a page, at most. */
const PAGE = 1000

async function* pages(db: Queries, { ownerId, ...period }: StatementRequest): AsyncGenerator<StatementRow[]> {
  const ofMany = (await countPostings(db, ownerId)) > FEW
  for (let after: StatementRow | null = null; ; ) {
    const rows = await readPostings(db, ownerId, period, after, { limit: PAGE, ofMany })
    yield rows
    if (rows.length < PAGE) return
    after = rows.at(-1) ?? null
  }
}

async function namesOf(db: Queries, rows: readonly StatementRow[]) {
  const subjects = (...kinds: EntryKind[]) =>
    rows.filter((row) => kinds.includes(row.kind)).map((row) => row.subject_id)
  return {
    sales: await saleNamesOf(db, subjects('sale_accepted')),
    credits: await creditNamesOf(db, subjects('credit_granted')),
    cycles: await cyclePeriodsOf(db, subjects('cycle_closed', 'cycle_charged')),
  }
}
