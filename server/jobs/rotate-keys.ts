import { recordAudit } from '../flags/audit.service.ts'
import { keysToRetire, sealForKeyRotation } from '../ledger/seals/seals.service.ts'
import { SEALED_WEBHOOK_SECRETS } from '../notifications/channels/webhooks/endpoint-secrets.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { readKeyMark, renewMark } from '../platform/crypto/key-mark.ts'
import type { SealedRow, SealedTable } from '../platform/crypto/sealed-rows.ts'
import { IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import { type Queries, type Tx, WriteConflict } from '../platform/database/database.ts'
import {
  isCurrentDigest,
  keyOf,
  pageOfRows,
  renewDigest,
  renewedTables,
  requireAuthentic,
} from '../platform/database/protected-rows.ts'
import type { Digested } from '../platform/database/protected-tables.ts'
import type { Platform } from '../platform/platform.ts'
import { SEALED_SECRETS } from '../stores/store-secrets.service.ts'
import { SEALED_BILLING_ACCOUNTS, SEALED_DESTINATIONS } from '../users/sealed-accounts.service.ts'
import { SEALED_SECOND_FACTORS } from '../users/second-factor.service.ts'
import { refreshMailboxes } from '../watches/identity-watch.service.ts'

const SEALED_TABLES: readonly SealedTable[] = [
  SEALED_DESTINATIONS,
  SEALED_BILLING_ACCOUNTS,
  SEALED_SECOND_FACTORS,
  SEALED_SECRETS,
  SEALED_WEBHOOK_SECRETS,
]

/** Rows in one transaction: few, so that a running service does not wait for it. */
const PAGE = 200
/** A service that still seals with a former key can add rows during each pass. */
const MOST_PASSES = 5

interface RotationOptions {
  /** Counts the rows and writes nothing. */
  dryRun: boolean
  /** A user's id, or `OPERATOR`. */
  actor: string
  onProgress?: (table: string, rows: number) => void
}

/** A row that could not be re-encrypted. It stays unchanged, and every use of it is refused. */
interface LeftRow {
  table: string
  id: string
  problem: string
  /** True when it was sealed with an unknown key; it opens once that key is added to APP_KEYS_FORMER. */
  keyMissing: boolean
}

export interface Rotation {
  /** The current key, by its public id. */
  keyId: string
  /** The ids of former keys that this rotation retired for the journal, or would retire. */
  retired: string[]
  /** Rows checked and re-encrypted, or to be re-encrypted, by table. */
  tables: { table: string; rows: number; resealed: number }[]
  left: LeftRow[]
}

/**
 * Makes APP_KEY the only key in use: seals the journal and retires its former keys, so that later entries with them are refused;
 * re-encrypts every encrypted column with APP_KEY; and replaces the database's mark. Every process must have the new APP_KEY. Works in small transactions beside a running service, and can be
 * interrupted and run again. Refuses with `conflict` when the keys do not belong to this database; throws `SettingError` when
 * APP_KEY was retired.
 */
export async function rotateKeys(platform: Platform, options: RotationOptions): Promise<Rotation> {
  const { database, vault, keys } = platform
  const mark = await readKeyMark(database.reader, vault)
  if (mark === 'foreign') {
    throw new Refusal(
      'conflict',
      'APP_KEY and APP_KEYS_FORMER do not include the key of this database. Set the former APP_KEY, or add it to APP_KEYS_FORMER.',
    )
  }
  const rotation: Rotation = {
    keyId: keys.current.id,
    retired: await keysToRetire(platform),
    tables: [],
    left: [],
  }
  if (!options.dryRun) await sealForKeyRotation(platform)
  const add = (table: string, { rows, resealed, left }: Done) => {
    rotation.tables.push({ table, rows, resealed })
    rotation.left.push(...left)
  }
  for (const table of SEALED_TABLES) add(table.name, await resealTable(platform, table, options))
  add('mailboxes', await resealMailboxes(platform, options))
  const digests = noneDone()
  for (const table of renewedTables()) addUp(digests, await renewDigests(platform, table, options))
  add('row_digest', digests)
  const changed = rotation.retired.length > 0 || rotation.tables.some(({ resealed }) => resealed > 0)
  if (!options.dryRun && (mark !== 'current' || changed)) await finish(platform, options.actor, rotation)
  return rotation
}

/** What was done with one page, or with all of them. */
interface Done {
  /** Rows that were checked. */
  rows: number
  resealed: number
  left: LeftRow[]
}

const noneDone = (): Done => ({ rows: 0, resealed: 0, left: [] })

function addUp(sum: Done, { rows, resealed, left }: Done): void {
  sum.rows += rows
  sum.resealed += resealed
  sum.left.push(...left)
}

/** `last` is the key of the page's last row; `null` without rows. `tx` is `null` in a dry run, which writes nothing. */
type PageWork<Key> = (db: Queries, tx: Tx | null, after: Key | null) => Promise<Done & { last: Key | null }>

/** Goes through a table, each page in its own transaction. */
async function allPages<Key>(
  { database }: Platform,
  { dryRun, onProgress }: RotationOptions,
  table: string,
  work: PageWork<Key>,
): Promise<Done> {
  const sum = noneDone()
  for (let after: Key | null = null; ; ) {
    const from: Key | null = after
    const page: Awaited<ReturnType<typeof work>> = await (dryRun
      ? work(database.reader, null, from)
      : database.transaction((tx) => work(tx, tx, from)))
    if (page.last === null) return sum
    addUp(sum, page)
    onProgress?.(table, sum.rows)
    after = page.last
  }
}

/** Seals the rows of a page again where `reseal` finds them outdated, and returns true; those that do not open are left. */
async function resealRows<Row>(
  table: string,
  rows: readonly Row[],
  idOf: (row: Row) => string,
  reseal: (row: Row) => Promise<boolean>,
): Promise<Done> {
  const done: Done = { ...noneDone(), rows: rows.length }
  for (const row of rows) {
    try {
      if (await reseal(row)) done.resealed += 1
    } catch (error) {
      const keyMissing = error instanceof UnknownKeyError
      if (!keyMissing && !(error instanceof IntegrityError)) throw error
      done.left.push({ table, id: idOf(row), problem: error.message, keyMissing })
    }
  }
  return done
}

async function resealTable(platform: Platform, table: SealedTable, options: RotationOptions): Promise<Done> {
  const { vault } = platform
  let resealed = 0
  for (let pass = 1; ; pass += 1) {
    const found = await allPages<string>(platform, options, table.name, async (db, tx, after) => {
      const rows = await table.page(db, vault, after, PAGE)
      const reseal = async (row: SealedRow) => {
        if (vault.isCurrent(row.sealed)) return false
        const text = await row.open()
        if (tx && !(await row.reseal(tx, text))) throw new WriteConflict(`row ${row.id} of ${table.name}`)
        return true
      }
      const done = await resealRows(table.name, rows, ({ id }) => id, reseal)
      return { ...done, last: rows.at(-1)?.id ?? null }
    })
    resealed += found.resealed
    if (options.dryRun || found.resealed === 0 || pass === MOST_PASSES) return { ...found, resealed }
  }
}

function renewDigests(platform: Platform, table: Digested, options: RotationOptions): Promise<Done> {
  return allPages<readonly unknown[]>(platform, options, table, async (db, tx, after) => {
    const { rows, last } = await pageOfRows(db, table, after, PAGE)
    const idOf = (row: (typeof rows)[number]) => keyOf(table, row)
    const done = await resealRows(table, rows, idOf, async (row) => {
      if (isCurrentDigest(platform.keys, row)) return false
      requireAuthentic(platform.keys, table, row)
      if (tx) await renewDigest(tx, table, row)
      return true
    })
    return { ...done, last }
  })
}

function resealMailboxes(platform: Platform, options: RotationOptions): Promise<Done> {
  return allPages<string>(platform, options, 'mailboxes', async (db, tx, after) => {
    const { changed, ...page } = await refreshMailboxes(platform, db, tx, { after, limit: PAGE })
    return { ...page, resealed: changed, left: [] }
  })
}

function finish(platform: Platform, actor: string, rotation: Rotation): Promise<void> {
  const { database, vault } = platform
  return database.transaction(async (tx) => {
    await renewMark(tx, vault)
    await recordAudit(platform, tx, {
      actor,
      action: 'keys.rotate',
      subjectType: 'app_key',
      subjectId: rotation.keyId,
      after: {
        resealed: Object.fromEntries(rotation.tables.map(({ table, resealed }) => [table, resealed])),
        left: rotation.left.length,
        retired_keys: rotation.retired,
      },
    })
  })
}
