import type { Command } from 'commander'
import type { InvariantResult } from '../../server/proof/invariants/verify-books.ts'
import type { OwnedBalance } from '../../server/users/account-balances.service.ts'
import { CURRENCY } from '../../shared/money.ts'
import { addGroup, exampleText } from '../command.ts'
import { assertMigrated, withApp, withDatabase } from '../context.ts'
import { Failure } from '../failures.ts'
import { displayMoney, formatMoney, type Output } from '../output.ts'
import { printable } from '../table.ts'

export function addLedgerCommands(program: Command): void {
  const group = addGroup(program, 'ledger', 'the journal: check the books, show balances')
  group
    .command('verify')
    .description('check every invariant of the books; exit 1 when a row breaks one')
    .addHelpText('after', exampleText('ledger verify'))
    .action((_options: object, command: Command) => verify(command))
  group
    .command('balances')
    .description('the balance of every account, or of one user')
    .argument('[user]', 'id or e-mail')
    .addHelpText('after', exampleText('ledger balances', 'ledger balances creator@example.com --json'))
    .action((user: string | undefined, _options: object, command: Command) => balances(user, command))
}

/** Works from the database alone, so that a backup can be checked where its key is not. */
function verify(command: Command): Promise<void> {
  return withDatabase(command, async ({ database, out }) => {
    await assertMigrated(database)
    const { verifyBooks } = await import('../../server/proof/invariants/verify-books.ts')
    const results = await verifyBooks(database, (name) => out.progress(`checking ${name}`))
    out.endProgress()
    const broken = results.filter((result) => result.breaches.length > 0)
    out.show({ ok: broken.length === 0, items: results }, () => verifyLines(out, results))
    if (broken.length === 0) return
    const rows = broken.flatMap((result) => result.breaches.map((breach) => breach.subject))
    throw new Failure(
      `The books do not hold: ${broken.map((result) => result.name).join(', ')}; rows: ${shortList(rows)}`,
    )
  })
}

function verifyLines(out: Output, results: readonly InvariantResult[]): string[] {
  const total = results.reduce((sum, result) => sum + result.rows, 0)
  const broken = results.filter((result) => result.breaches.length > 0)
  return [
    ...out.table(
      [
        { title: 'Invariant' },
        { title: 'Rows', right: true },
        { title: 'Breaches', right: true },
        { title: 'What must hold', flexible: true },
      ],
      results.map((result) => [
        result.name,
        String(result.rows),
        String(result.breaches.length),
        result.statement,
      ]),
    ),
    ...broken.flatMap((result) => [
      '',
      out.style('red', `${result.name} is broken:`),
      ...result.breaches.map(({ subject, detail }) => printable(`  ${subject}: ${detail}`)),
    ]),
    ...(broken.length === 0
      ? ['', out.style('green', `All ${results.length} invariants hold (${total} rows looked at).`)]
      : []),
  ]
}

const MOST_NAMED = 5

function shortList(rows: readonly string[]): string {
  const distinct = [...new Set(rows)]
  const more = distinct.length - MOST_NAMED
  return distinct.slice(0, MOST_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function balances(user: string | undefined, command: Command): Promise<void> {
  return withApp(command, async ({ app, out }) => {
    const { listBalances } = await import('../../server/users/account-balances.service.ts')
    const { findUser } = await import('../../server/users/users.service.ts')
    const owner = user === undefined ? null : await findUser(app.platform, user)
    const rows = await listBalances(app.platform, owner?.id ?? null)
    const total = rows.reduce((sum, row) => sum + row.balance, 0)
    const document = { items: rows.map(wireBalance), total: formatMoney(total), currency: CURRENCY }
    out.show(document, () => balanceTable(out, rows, owner === null))
  })
}

function balanceTable(out: Output, rows: readonly OwnedBalance[], whole: boolean): string[] {
  const debits = rows.reduce((sum, row) => sum + Math.max(row.balance, 0), 0)
  const credits = rows.reduce((sum, row) => sum - Math.min(row.balance, 0), 0)
  const total = ['Total', '', displayMoney(debits), displayMoney(credits), '']
  return out.table(
    [
      { title: 'Account' },
      { title: 'Owner', flexible: true },
      { title: 'Debit', right: true },
      { title: 'Credit', right: true },
      { title: 'Postings', right: true },
    ],
    [
      ...rows.map(({ account, owner, balance, postings }) => [
        account,
        owner === null ? 'platform' : (owner.email ?? owner.id),
        balance > 0 ? displayMoney(balance) : '',
        balance < 0 ? displayMoney(-balance) : '',
        String(postings),
      ]),
      ...(whole ? [total] : []),
    ],
  )
}

function wireBalance({ account, owner, balance, postings }: OwnedBalance) {
  return {
    account,
    owner: owner && { id: owner.id, email: owner.email, display_name: owner.displayName },
    balance: formatMoney(balance),
    postings,
  }
}
