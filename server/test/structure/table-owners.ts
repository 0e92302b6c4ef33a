import { lineAt } from './source-text.ts'
import { isTest, type SourceFile, type SourceTree, type Violation } from './source-tree.ts'

/** Concepts that may read every table. */
const READ_ALL = ['reports', 'verification', 'watches']

/**
 * The other reads across tables, each a join or an aggregate that its owner could not answer without a query for each row. Nothing
 * but its owner writes a table.
 */
const MAY_READ: Record<string, readonly string[]> = {
  // The name of the merchant or creator beside a listed row; the paid rate of an offer that is searched by it.
  offers: ['users', 'pending_orders'],
  links: ['users', 'offers'],
  // The recipient's name and address; deliveries of suspended accounts wait.
  notifications: ['users'],
  // A failed payout is known by the cycles that it paid for.
  payouts: ['billing_cycle_shares'],
  sales: ['affiliate_links', 'clicks'],
  // The slug of its link, and the creator of its sale.
  'pending-orders': ['affiliate_links', 'sales'],
  clicks: ['affiliate_links'],
  // Looks at a database whose migrations may be missing.
  'cli/doctor': ['mails', 'inbound_events', 'schedule_runs', 'sales', 'ledger_entries', 'stores'],
}

/** Shared by all: each concept has its own row. */
const COMMON = ['watermarks']

const READS =
  /(?:selectFrom|innerJoin|leftJoin)\(\s*\[?\s*['"`]([a-z_]+)|\b(?:from|join)\s+(?:only\s+)?([a-z_]+)\b/g
const WRITES =
  /(?:insertInto|updateTable|deleteFrom|bulkInsert(?:<[^>]*>)?|insertStatement(?:<[^>]*>)?|(?:insert|lock|change|update|take|delete)Rows?(?:IfNew)?)\(\s*(?:tx, )?['"`]([a-z_]+)|\b(?:insert into|update|delete from|truncate)\s+([a-z_]+)\b/g

/** A table is written by the folder of its entity, and read by others only as declared. */
export function findForeignTables(tree: SourceTree): Violation[] {
  const owners = ownersOf(tree)
  return tree.filter(isProduction).flatMap((file) => {
    const concept = conceptOf(file.path)
    const mayRead = READ_ALL.includes(concept) ? [...owners.keys()] : (MAY_READ[concept] ?? [])
    const foreign = (table: string) =>
      owners.has(table) && owners.get(table) !== concept && !COMMON.includes(table)
    return [
      ...uses(file, WRITES)
        .filter(({ table }) => foreign(table))
        .map(({ table, line }) => ({
          path: file.path,
          line,
          why: `writes ${table}; only ${owners.get(table)} may`,
        })),
      ...uses(file, READS)
        .filter(({ table }) => foreign(table) && !mayRead.includes(table))
        .map(({ table, line }) => ({ path: file.path, line, why: `reads ${table} of ${owners.get(table)}` })),
    ]
  })
}

function ownersOf(tree: SourceTree): Map<string, string> {
  const owners = new Map<string, string>()
  for (const { path, text } of tree) {
    if (!path.endsWith('.entity.ts')) continue
    for (const [, table = ''] of text.matchAll(/tableName: '([a-z_]+)'/g)) owners.set(table, conceptOf(path))
  }
  return owners
}

/** `server/<concept>/…` → concept; `cli/<folder>/…` → `cli/<folder>`. */
function conceptOf(path: string): string {
  const [root, folder = ''] = path.split('/')
  return root === 'server' ? folder : `${root}/${folder}`
}

function isProduction({ path }: SourceFile): boolean {
  return (
    /^(server|cli)\//.test(path) &&
    !/^(server|cli)\/test\/|^server\/(migrations|http\/openapi)\//.test(path) &&
    !isTest(path)
  )
}

function uses({ text, comments }: SourceFile, pattern: RegExp): { table: string; line: number }[] {
  return [...text.matchAll(pattern)]
    .filter(({ index }) => comments.charAt(index) === ' ')
    .map((match) => ({ table: match[1] ?? match[2] ?? '', line: lineAt(text, match.index) }))
}
