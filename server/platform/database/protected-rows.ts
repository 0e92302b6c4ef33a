import { AsyncLocalStorage } from 'node:async_hooks'
import { timingSafeEqual } from 'node:crypto'
import { CompiledQuery, type RawBuilder, type Selectable, sql } from 'kysely'
import { type AppKeys, keyOfText } from '../crypto/key-ring.ts'
import { createVault, IntegrityError, UnknownKeyError } from '../crypto/vault.ts'
import { ParameterRows } from './bulk-values.ts'
import { type Database, dialectOf, inSavepoint, type Queries, type Tx, unitTransaction } from './database.ts'
import { DIGESTED_TABLES, type Digested, declarationOf } from './protected-tables.ts'
import type { Schema } from './schema.ts'
import { lockWatermark, setWatermark } from './watermarks.ts'

/*
 * Rows that a database writer without APP_KEY cannot change unseen: see protected-tables.ts. Each carries a keyed digest. The heads, one
 * sealed value in the database, hold for each table how many rows it has and the sum of what stands for their digests, so a row that is deleted,
 * or replaced by an older one, is found as well.
 */

type Row = Readonly<Record<string, unknown>> & { readonly row_digest?: unknown }
export type RowOf<T extends Digested> = Selectable<Schema[T]>
/** A row as it is written: its digest is computed, and columns that are left out are null. */
export type NewRow<T extends Digested> = Omit<RowOf<T>, 'row_digest' | NullableOf<RowOf<T>>> &
  Partial<Pick<RowOf<T>, NullableOf<RowOf<T>>>>
type NullableOf<R> = { [C in keyof R]: null extends R[C] ? C : never }[keyof R]

/** Which rows: those with these values, or those that meet a condition. */
export type Condition<T extends Digested> = RawBuilder<unknown> | Partial<RowOf<T>>

function conditionOf(condition: RawBuilder<unknown> | Row): RawBuilder<unknown> {
  if ('toOperationNode' in condition) return condition as RawBuilder<unknown>
  const equal = Object.entries(condition as Row).map(([column, value]) =>
    value === null ? sql`${sql.ref(column)} is null` : sql`${sql.ref(column)} = ${value}`,
  )
  return sql.join(equal, sql` and `)
}

/** A row that was changed outside of the service. Every use of it is refused. */
export class TamperedRow extends IntegrityError {
  readonly table: Digested
  /** The primary key; of several columns, with slashes between. */
  readonly key: string

  constructor(table: Digested, row: Row) {
    const key = keyOf(table, row)
    super(`The row ${key} of ${table} was added or changed outside of the service.`)
    this.name = 'TamperedRow'
    this.table = table
    this.key = key
  }
}

/** The keys of the running transaction, and by table what it adds to the heads. */
const running = new AsyncLocalStorage<{ keys: AppKeys; changes: RowHeads }>()

function runningTransaction() {
  const found = running.getStore()
  if (!found) throw new Error('not inside a transaction of a database with keys: see withRowKeys')
  return found
}

export function transactionKeys(): AppKeys {
  return runningTransaction().keys
}

/**
 * The database whose transactions digest rows with these keys. A transaction that met a changed row fails after `onTampered`. Inside a unit
 * of work, its reads and transactions are parts of that.
 */
export function withRowKeys<D extends Database>(
  database: D,
  keys: AppKeys,
  onTampered: (error: TamperedRow) => Promise<void> | void = () => {},
): D {
  return {
    ...database,
    get reader() {
      return unitTransaction() ?? database.reader
    },
    transaction(work) {
      const unit = unitTransaction()
      if (unit) return inSavepoint(unit, (tx) => keepingHeads(() => work(tx)))
      return database
        .transaction((tx) => {
          const changes: RowHeads = new Map()
          return running.run({ keys, changes }, async () => {
            const result = await work(tx)
            // The last step before the commit, because all transactions share the heads.
            if (changes.size > 0) await writeHeads(tx, keys, changes)
            return result
          })
        })
        .catch(async (error: unknown) => {
          if (error instanceof TamperedRow) await onTampered(error)
          throw error
        })
    },
  }
}

/** Runs a part of a transaction; if it throws, it leaves nothing to add to the heads. */
async function keepingHeads<T>(work: () => Promise<T>): Promise<T> {
  const { changes } = runningTransaction()
  const before = [...changes]
  try {
    return await work()
  } catch (error) {
    changes.clear()
    for (const [table, head] of before) changes.set(table, head)
    throw error
  }
}

export function keyOf(table: Digested, row: Row): string {
  return declarationOf(table)
    .key.map((column) => row[column])
    .join('/')
}

/**
 * `KEYID.HEX`, with the current key: binds the table, and names and values of what the digest covers, to each other, so that writing the
 * row takes the key. Columns that are null are left out.
 */
export function digestOf({ current: key }: Pick<AppKeys, 'current'>, table: Digested, row: Row): string {
  const values: unknown[] = [table]
  for (const column of digestedColumns(table, row)) {
    const value = row[column] ?? null
    // As both databases store it: a lone surrogate becomes U+FFFD.
    if (value !== null) values.push(column, typeof value === 'string' ? value.toWellFormed() : value)
  }
  return `${key.id}.${key.mac('affiliate row digest', JSON.stringify(values))}`
}

function digestedColumns(table: Digested, row: Row): readonly string[] {
  const { columns, covered = [], unprotected = {} } = declarationOf(table)
  if (columns) return columns
  const isDigested = (column: string) =>
    column !== 'row_digest' && !covered.includes(column) && !(column in unprotected)
  return Object.keys(row).filter(isDigested).toSorted()
}

/** A row with its digest, for inserts of uncounted tables that do not go through `insertRows`. */
export function withDigest<T extends Digested, const R extends Row & Partial<Omit<RowOf<T>, 'row_digest'>>>(
  keys: AppKeys,
  table: T,
  row: R,
): R & { row_digest: string } {
  return { ...row, row_digest: digestOf(keys, table, row) }
}

/** `changed` when the row does not belong to its digest; `unknown_key` when the digest's key is not in the ring. */
export function stateOf(keys: AppKeys, table: Digested, row: Row): 'holds' | 'changed' | 'unknown_key' {
  const stored = String(row.row_digest)
  if (!/^[0-9a-f]{8}\./.test(stored)) return 'changed'
  const key = keyOfText(keys, stored)
  if (!key) return 'unknown_key'
  const given = Buffer.from(stored)
  const expected = Buffer.from(digestOf({ current: key }, table, row))
  return given.length === expected.length && timingSafeEqual(given, expected) ? 'holds' : 'changed'
}

/** Throws `TamperedRow` when the row was changed outside of the service, and `UnknownKeyError`. */
export function requireAuthentic(keys: AppKeys, table: Digested, row: Row): void {
  const state = stateOf(keys, table, row)
  if (state === 'unknown_key') throw new UnknownKeyError(String(row.row_digest).slice(0, 8))
  if (state === 'changed') throw new TamperedRow(table, row)
}

/** Why a row is not the one that the service wrote; `null` when it is. */
export function rowProblem(keys: AppKeys, table: Digested, row: object): string | null {
  try {
    requireAuthentic(keys, table, row as Row)
    return null
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) return error.message
    throw error
  }
}

/** Rows that the service wrote, and the others, each with its problem. */
export function splitRows<T extends Digested, R extends RowOf<T> & { id: string }>(
  keys: AppKeys,
  table: T,
  rows: readonly R[],
): { authentic: R[]; forged: { id: string; problem: string }[] } {
  const judged = rows.map((row) => ({ row, problem: rowProblem(keys, table, row) }))
  return {
    authentic: judged.filter(({ problem }) => problem === null).map(({ row }) => row),
    forged: judged.flatMap(({ row, problem }) => (problem === null ? [] : [{ id: row.id, problem }])),
  }
}

/** The rows, each checked. For reads that lead to money or power. Throws `TamperedRow` and `UnknownKeyError`. */
export function authentic<T extends Digested, R extends RowOf<T>>(
  keys: AppKeys,
  table: T,
  rows: readonly R[],
): readonly R[] {
  for (const row of rows) requireAuthentic(keys, table, row)
  return rows
}

/** How a query reads these columns of a protected table beside those of another one, and how its rows are taken apart. */
export function joinedRow<R extends object>(alias: string, columns: readonly (keyof R & string)[]) {
  const prefix = `of_${alias}_`
  return {
    columns: sql.join(
      columns.map((column) => sql`${sql.ref(`${alias}.${column}`)} as ${sql.ref(prefix + column)}`),
    ),
    split<Rest extends object>(found: Rest): { row: R; rest: Rest } {
      const cells = found as Record<string, unknown>
      const row = Object.fromEntries(columns.map((column) => [column, cells[prefix + column]]))
      const rest = Object.fromEntries(Object.entries(cells).filter(([name]) => !name.startsWith(prefix)))
      return { row: row as R, rest: rest as Rest }
    },
  }
}

/** Inserts rows with their digests; throws what the database throws. */
export async function insertRows<T extends Digested>(
  tx: Tx,
  table: T,
  rows: readonly NewRow<T>[],
): Promise<void> {
  await insertNewRows(tx, table, rows, '')
}

/** `insertRows` for one row, which it returns. */
export async function insertRow<T extends Digested>(tx: Tx, table: T, row: NewRow<T>): Promise<RowOf<T>> {
  const [inserted] = await insertNewRows(tx, table, [row], 'returning *')
  return inserted as RowOf<T>
}

/** As `insertRows`, but leaves rows out that a unique index refuses; returns those that were inserted. */
export async function insertRowsIfNew<T extends Digested>(
  tx: Tx,
  table: T,
  rows: readonly NewRow<T>[],
): Promise<RowOf<T>[]> {
  return (await insertNewRows(tx, table, rows, 'on conflict do nothing returning *')) as RowOf<T>[]
}

async function insertNewRows(
  tx: Tx,
  table: Digested,
  rows: readonly Row[],
  ending: string,
): Promise<readonly Row[]> {
  if (rows.length === 0) return []
  const keys = transactionKeys()
  const whole = rows.map((row): Row => ({ ...row, row_digest: digestOf(keys, table, row) }))
  const names = Object.keys(whole[0] ?? {})
  const into = `insert into ${table} (${names.join(', ')})`
  const inserted = await executeForRows(tx, table, names, whole, {
    each: `${into} values (${names.map(() => '?').join(', ')}) ${ending}`,
    all: (next) => `${into} select ${names.join(', ')} from ${next} ${ending}`,
  })
  for (const row of ending === '' ? whole : inserted) noteChange(table, null, String(row.row_digest))
  return inserted
}

/** Runs a statement for rows: `each` for each of them on SQLite, whose parameters are the named columns; `all` once on PostgreSQL. */
async function executeForRows(
  tx: Tx,
  table: Digested,
  names: readonly string[],
  rows: readonly Row[],
  { each, all }: { each: string; all: (next: string) => string },
): Promise<readonly Row[]> {
  if (dialectOf(tx) === 'sqlite') {
    const parameters = new ParameterRows(rows.map((row) => names.map((name) => row[name] ?? null)))
    return (await tx.executeQuery<Row>(CompiledQuery.raw(each, [parameters]))).rows
  }
  const objects = rows.map((row) => Object.fromEntries(names.map((name) => [name, row[name]])))
  const json = JSON.stringify(objects, (_name, value) =>
    typeof value === 'string' ? value.toWellFormed() : value,
  )
  const next = `jsonb_populate_recordset(null::${table}, $1::jsonb) as next`
  return (await tx.executeQuery<Row>(CompiledQuery.raw(all(next), [json]))).rows
}

/**
 * Sets columns of the rows that meet the condition, checks each row as it was, and renews the digests. Returns the rows as they are then.
 * Throws `TamperedRow` and `UnknownKeyError`.
 */
export async function updateRows<T extends Digested>(
  tx: Tx,
  table: T,
  condition: Condition<T>,
  change: Partial<NewRow<T>> | ((row: RowOf<T>) => Partial<NewRow<T>>),
): Promise<RowOf<T>[]> {
  return changeRows(tx, table, await selectForUpdate(tx, table, condition), change)
}

/**
 * The rows that meet the condition, in the order of their keys. Waits for transactions that have changed them, and lets no other transaction
 * change them until this one ends. Throws `TamperedRow` and `UnknownKeyError`.
 */
export async function lockRows<T extends Digested>(
  tx: Tx,
  table: T,
  condition: Condition<T>,
): Promise<readonly RowOf<T>[]> {
  return authentic(transactionKeys(), table, await selectForUpdate(tx, table, condition))
}

/** Sets columns of a locked row, in the database and in `row`. */
export async function changeRow<T extends Digested>(
  tx: Tx,
  table: T,
  row: RowOf<T>,
  change: Partial<NewRow<T>>,
): Promise<void> {
  Object.assign(row, ...(await changeRows(tx, table, [row], change)))
}

/** `updateRows` for whole rows that the caller has locked. */
export async function changeRows<T extends Digested>(
  tx: Tx,
  table: T,
  rows: readonly RowOf<T>[],
  change: Partial<NewRow<T>> | ((row: RowOf<T>) => Partial<NewRow<T>>),
): Promise<RowOf<T>[]> {
  const keys = transactionKeys()
  const updated: Row[] = []
  const writes = new Map<string, { columns: string[]; rows: Row[] }>()
  for (const row of rows as readonly (RowOf<T> & Row)[]) {
    requireAuthentic(keys, table, row)
    const set: Record<string, unknown> = typeof change === 'function' ? change(row) : change
    const next: Row = { ...row, ...set }
    const whole: Row = { ...next, row_digest: digestOf(keys, table, next) }
    updated.push(whole)
    const columns = [...Object.keys(set), 'row_digest']
    if (columns.every((column) => whole[column] === row[column])) continue
    const write = writes.get(columns.join()) ?? { columns, rows: [] }
    writes.set(columns.join(), write)
    write.rows.push(whole)
    noteChange(table, String(row.row_digest), String(whole.row_digest))
  }
  for (const { columns, rows } of writes.values()) await writeColumns(tx, table, columns, rows)
  return updated as RowOf<T>[]
}

/** Writes these columns of rows that are there. */
async function writeColumns(tx: Tx, table: Digested, columns: string[], rows: readonly Row[]): Promise<void> {
  const { key } = declarationOf(table)
  const set = (value: (name: string) => string) =>
    columns.map((name) => `${name} = ${value(name)}`).join(', ')
  const where = (value: (name: string) => string) =>
    key.map((name) => `${table}.${name} = ${value(name)}`).join(' and ')
  await executeForRows(tx, table, [...columns, ...key], rows, {
    each: `update ${table} set ${set(() => '?')} where ${where(() => '?')}`,
    all: (next) =>
      `update ${table} set ${set((name) => `next.${name}`)} from ${next} where ${where((name) => `next.${name}`)}`,
  })
}

/** Deletes the rows that meet the condition and returns them. Throws nothing for a changed row: its deletion only takes away. */
export async function deleteRows<T extends Digested>(
  tx: Tx,
  table: T,
  condition: Condition<T>,
): Promise<RowOf<T>[]> {
  const deleted = await sql<RowOf<T>>`
    delete from ${sql.table(table)} where ${conditionOf(condition)} returning *`.execute(tx)
  for (const row of deleted.rows) noteChange(table, String((row as Row).row_digest), null)
  return deleted.rows
}

/** As `deleteRows`, for rows that are used up. Throws `TamperedRow` and `UnknownKeyError`. */
export async function takeRows<T extends Digested>(
  tx: Tx,
  table: T,
  condition: Condition<T>,
): Promise<readonly RowOf<T>[]> {
  return authentic(transactionKeys(), table, await deleteRows(tx, table, condition))
}

async function selectForUpdate<T extends Digested>(
  tx: Tx,
  table: T,
  condition: Condition<T>,
): Promise<RowOf<T>[]> {
  const key = sql.join(declarationOf(table).key.map((column) => sql.ref(column)))
  const lock = dialectOf(tx) === 'sqlite' ? sql`` : sql` for no key update`
  const found = await sql<RowOf<T>>`
    select * from ${sql.table(table)} where ${conditionOf(condition)} order by ${key}${lock}`.execute(tx)
  return found.rows
}

/** The rows after the key `after` of those that are asked for, in the order of the key. */
export async function pageOfRows(
  db: Queries,
  table: Digested,
  after: readonly unknown[] | null,
  limit: number,
  only: RawBuilder<unknown> = sql`true`,
): Promise<{ rows: Row[]; last: readonly unknown[] | null }> {
  const { key, columns: digested } = declarationOf(table)
  const columns = sql.join(key.map((column) => sql.ref(column)))
  const selected = digested ? sql.join([...digested, 'row_digest'].map((column) => sql.ref(column))) : sql`*`
  const behind = after ? sql`(${columns}) > (${sql.join(after)})` : sql`true`
  const { rows } = await sql<Row>`
    select ${selected} from ${sql.table(table)} where ${behind} and ${only}
    order by ${columns} limit ${sql.lit(limit)}`.execute(db)
  const last = rows.at(-1)
  return { rows, last: last ? key.map((column) => last[column]) : null }
}

/** Gives a row whose digest holds one of the current key. Throws `TamperedRow` and `UnknownKeyError`. */
export async function renewDigest(tx: Tx, table: Digested, row: Row): Promise<void> {
  const key = declarationOf(table).key.map((column) => [column, row[column]])
  await updateRows(tx, table, conditionOf(Object.fromEntries(key)), {})
}

/** The tables whose digests a rotation of APP_KEY renews. */
export function renewedTables(): Digested[] {
  return (Object.keys(DIGESTED_TABLES) as Digested[]).filter((table) => !declarationOf(table).columns)
}

/** Whether a row has a digest of the current key. */
export function isCurrentDigest(keys: AppKeys, row: Row): boolean {
  return String(row.row_digest).startsWith(`${keys.current.id}.`)
}

/*
 * The heads.
 */

const HEADS = 'row_heads'
const BINDING = { purpose: 'row heads', row: HEADS, owner: '', facts: [] }

/** By table, how many rows it has and the sum of the elements of their digests, modulo 2^256. */
type RowHeads = Map<string, { rows: number; sum: bigint }>

/**
 * What stands for a digest in the sum: known to holders of the key only, because sums of known numbers could be composed from older rows.
 * A digest of an unknown key counts as 0.
 */
function elementOf(keys: AppKeys, digest: string): bigint {
  const key = keyOfText(keys, digest)
  return key ? BigInt(`0x${key.mac('affiliate row head', digest)}`) : 0n
}

/** Notes for the heads that a row of a table changed: `null` for no row. */
export function noteChange(table: Digested, from: string | null, to: string | null): void {
  const { counted, countedOnce } = declarationOf(table)
  if (!counted || countedOnce) return
  const { keys, changes } = runningTransaction()
  if (from !== null) addToHead(changes, table, -1, -elementOf(keys, from))
  if (to !== null) addToHead(changes, table, 1, elementOf(keys, to))
}

/** Notes for the heads that so many rows of a table have come to meet its condition `countedOnce`. */
export function noteCounted(table: Digested, rows: number): void {
  if (rows > 0) addToHead(runningTransaction().changes, table, rows, 0n)
}

function addToHead(heads: RowHeads, table: string, rows: number, sum: bigint): void {
  const head = heads.get(table) ?? { rows: 0, sum: 0n }
  heads.set(table, { rows: head.rows + rows, sum: BigInt.asUintN(256, head.sum + sum) })
}

async function writeHeads(tx: Tx, keys: AppKeys, changes: RowHeads): Promise<void> {
  const heads = openHeads(keys, await lockWatermark(tx, HEADS, sealHeads(keys, new Map())))
  // Changed by another hand: verification reports it until the heads are put back.
  if (heads === null) return
  for (const [table, { rows, sum }] of changes) addToHead(heads, table, rows, sum)
  await setWatermark(tx, HEADS, sealHeads(keys, heads))
}

function sealHeads(keys: AppKeys, heads: RowHeads): string {
  const text = JSON.stringify([...heads].map(([table, { rows, sum }]) => [table, rows, sum.toString(16)]))
  return createVault(keys).seal(text, BINDING)
}

/** `null` when the heads were changed. No stored heads are those of empty tables. Throws `UnknownKeyError`. */
function openHeads(keys: AppKeys, stored: string | undefined): RowHeads | null {
  if (stored === undefined) return new Map()
  try {
    const heads: [string, number, string][] = JSON.parse(createVault(keys).open(stored, BINDING))
    return new Map(heads.map(([table, rows, sum]) => [table, { rows, sum: BigInt(`0x${sum}`) }]))
  } catch (error) {
    if (error instanceof IntegrityError) return null
    throw error
  }
}

/** What differs between a table and its head; `null` if nothing does. One statement, so it sees one moment. */
export async function headProblem(db: Queries, keys: AppKeys, table: Digested): Promise<string | null> {
  const { countedOnce } = declarationOf(table)
  const found = countedOnce
    ? sql`select null, null, count(*) from ${sql.table(table)} where ${sql.raw(countedOnce)}`
    : sql`select null, row_digest, 1 from ${sql.table(table)}`
  const { rows } = await sql<{ head: string | null; row_digest: string | null; n: number }>`
    select value as head, null as row_digest, 0 as n from watermarks where name = ${HEADS}
    union all ${found}`.execute(db)
  const heads = openHeads(keys, rows.find(({ head }) => head !== null)?.head ?? undefined)
  if (heads === null) return 'the heads of all tables were changed outside of the service'
  const head = heads.get(table) ?? { rows: 0, sum: 0n }
  let present = 0
  let sum = 0n
  for (const { row_digest: digest, n } of rows) {
    present += Number(n)
    if (digest !== null) sum += elementOf(keys, digest)
  }
  if (present !== head.rows)
    return `has ${present} rows${countedOnce ? ` with ${countedOnce}` : ''}, where the service wrote ${head.rows}`
  if (BigInt.asUintN(256, sum) === head.sum) return null
  return 'holds an older or a changed row in place of one that the service wrote'
}
