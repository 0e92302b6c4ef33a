import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import { NIL_ID } from '../../server/platform/ids.ts'
import { readStatement, type StatementEntry } from '../../server/reports/statement.service.ts'
import { findUser, type UserRow } from '../../server/users/users.service.ts'
import { CURRENCY, type Paisa } from '../../shared/money.ts'
import { GrowingOutput } from '../terminal/list-output.ts'
import { displayMoney, formatMoney, type Output, wireTime } from '../terminal/output.ts'
import { money } from '../terminal/table.ts'

/** The statement of a user, by id or e-mail address, or of `platform`, in words or as JSON, as it is read. Refuses with `not_found`. */
export async function showStatement(
  out: Output,
  database: OpenDatabase,
  holder: string,
  period: { from: number; to: number },
): Promise<void> {
  const user = holder.trim().toLowerCase() === 'platform' ? null : await findUser({ database }, holder)
  const ownerId = user?.id ?? NIL_ID
  const list = new GrowingOutput<StatementEntry>(out, {
    columns: [
      out.moment('Time', (entry) => entry.created_at),
      { title: 'What', flexible: true, cell: (entry) => whatOf(entry, out) },
      { title: 'Debit', right: true, cell: ({ amount }) => (amount > 0 ? displayMoney(amount) : '') },
      { title: 'Credit', right: true, cell: ({ amount }) => (amount < 0 ? displayMoney(-amount) : '') },
      { title: 'Balance', right: true, cell: ({ balance }) => sided(balance) },
      { title: 'Account', cell: ({ account }) => account },
      { title: 'Entry', cell: (entry) => entry.entry_id },
    ],
    wire: wireEntry,
  })
  const owner = user && ownerOf(user)
  const who = user ? `${user.display_name} <${user.email}>, ${user.role}` : 'the platform'
  let entries = 0
  const summaries = await readStatement(
    database,
    { ownerId, ...period },
    {
      opening: (accounts) =>
        list.begin(
          {
            owner,
            from: wireTime(period.from),
            to: wireTime(period.to),
            currency: CURRENCY,
            opening: accounts.map(({ account, balance }) => ({ account, balance: formatMoney(balance) })),
          },
          [
            out.heading(`Statement of ${who}`),
            `From ${out.time(period.from)} to before ${out.time(period.to)}`,
            ...accounts.map(({ account, balance }) => `Opening balance of ${account}: ${sided(balance)}`),
            '',
          ],
        ),
      entry: (entry) => {
        entries += 1
        if (entries % 1000 === 0) out.progress(`${entries} entries`)
        list.add(entry)
      },
    },
  )
  out.endProgress()
  const closing = summaries.map((summary) => ({
    account: summary.account,
    opening: formatMoney(summary.opening),
    debits: formatMoney(summary.debits),
    credits: formatMoney(summary.credits),
    balance: formatMoney(summary.closing),
  }))
  const table = out.table(summaries, [
    { title: 'Account', cell: ({ account }) => account },
    { title: 'Opening', right: true, cell: ({ opening }) => sided(opening) },
    money('Debits', ({ debits }) => debits),
    money('Credits', ({ credits }) => credits),
    { title: 'Closing', right: true, cell: ({ closing }) => sided(closing) },
  ])
  const none = entries === 0 ? ['No entry in this period.', ''] : ['']
  const check = 'Opening plus debits less credits is closing, and the journal’s own sum says the same.'
  const lines = summaries.length === 0 ? ['No entry so far.'] : [...none, ...table, '', check]
  await list.end({ entries, closing }, lines)
}

/** A balance with its side, as an accountant writes it. */
function sided(balance: Paisa): string {
  if (balance === 0) return displayMoney(0)
  return `${displayMoney(Math.abs(balance))} ${balance > 0 ? 'Dr' : 'Cr'}`
}

const DAY_LENGTH = '2026-11-01'.length

/** What the statement says of its owner. */
function ownerOf({ id, email, display_name, role }: UserRow) {
  return { id, email, display_name, role }
}

function whatOf({ kind, subject_id: subjectId, sale, credit, cycle }: StatementEntry, out: Output): string {
  const period = cycle
    ? `${out.time(cycle.start).slice(0, DAY_LENGTH)} to before ${out.time(cycle.end).slice(0, DAY_LENGTH)}`
    : subjectId
  switch (kind) {
    case 'sale_accepted':
      return sale ? `Sale ${sale.order_name ?? ''} (order ${sale.order_id})` : `Sale ${subjectId}`
    case 'credit_granted':
      return credit ? `Credit ${credit.reference}: ${credit.reason}` : `Credit ${subjectId}`
    case 'cycle_closed':
      return `Cycle closed, ${period}`
    case 'cycle_charged':
      return `Cycle paid, ${period}`
    case 'payout_created':
      return `Payout made: ${subjectId}`
    case 'payout_confirmed':
      return `Payout paid: ${subjectId}`
    case 'payout_failed':
      return `Payout failed: ${subjectId}, back into the balance`
  }
}

function wireEntry(entry: StatementEntry) {
  const { sale, credit, amount } = entry
  return {
    entry_id: entry.entry_id,
    at: wireTime(entry.created_at),
    kind: entry.kind,
    subject_id: entry.subject_id,
    order_id: sale?.order_id ?? null,
    order_name: sale?.order_name ?? null,
    credit_reference: credit?.reference ?? null,
    account: entry.account,
    debit: formatMoney(Math.max(amount, 0)),
    credit: formatMoney(Math.max(-amount, 0)),
    balance: formatMoney(entry.balance),
  }
}
