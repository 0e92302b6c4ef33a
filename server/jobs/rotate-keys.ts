import { recordAudit } from '../flags/audit.service.ts'
import { keysToRetire, sealForKeyRotation } from '../ledger/seals/seals.service.ts'
import { SEALED_WEBHOOK_SECRETS } from '../notifications/channels/webhooks/endpoint-secrets.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { readKeyMark, renewMark } from '../platform/crypto/key-mark.ts'
import type { SealedRow, SealedTable } from '../platform/crypto/sealed-rows.ts'
import { IntegrityError, UnknownKeyError, type Vault } from '../platform/crypto/vault.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
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
import { SEALED_BILLING_ACCOUNTS } from '../users/billing-accounts.service.ts'
import { SEALED_DESTINATIONS } from '../users/payout-destinations.service.ts'
import { SEALED_SECOND_FACTORS } from '../users/second-factor.service.ts'
import { refreshMailboxes } from '../watches/identity-watch.service.ts'

export const SEALED_TABLES: readonly SealedTable[] = [
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

export interface RotationOptions {
  /** Counts the rows and writes nothing. */
  dryRun: boolean
  /** A user's id, or `OPERATOR`. */
  actor: string
  onProgress?: (table: string, rows: number) => void
}

/** A row that could not be re-encrypted. It stays unchanged, and every use of it is refused. */
export interface LeftRow {
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
  for (const table of SEALED_TABLES) {
    const { rows, resealed, left } = await resealTable(platform, table, options)
    rotation.tables.push({ table: table.name, rows, resealed })
    rotation.left.push(...left)
  }
  rotation.tables.push(await resealMailboxes(platform, options))
  const digests = { table: 'row_digest', rows: 0, resealed: 0 }
  for (const table of renewedTables()) {
    const { rows, resealed, left } = await renewDigests(platform, table, options)
    digests.rows += rows
    digests.resealed += resealed
    rotation.left.push(...left)
  }
  rotation.tables.push(digests)
  const changed = rotation.retired.length > 0 || rotation.tables.some(({ resealed }) => resealed > 0)
  if (!options.dryRun && (mark !== 'current' || changed)) await finish(platform, options.actor, rotation)
  return rotation
}

async function resealTable(platform: Platform, table: SealedTable, options: RotationOptions) {
  let rows = 0
  let resealed = 0
  let left: LeftRow[] = []
  for (let pass = 1; pass <= MOST_PASSES; pass += 1) {
    const found = await onePass(platform, table, options)
    rows = found.rows
    resealed += found.resealed
    left = found.left
    if (options.dryRun || found.outdated === found.left.length) break
  }
  return { rows, resealed, left }
}

async function onePass(platform: Platform, table: SealedTable, options: RotationOptions) {
  const { vault } = platform
  const left: LeftRow[] = []
  const sums = { rows: 0, outdated: 0, resealed: 0 }
  for (let after: string | null = null; ; ) {
    const from: string | null = after
    const page: ResealedPage = await onePage(platform, options, (db, tx) =>
      resealPage(db, tx, { vault, table, from }),
    )
    if (page.last === null) return { ...sums, left }
    sums.rows += page.rows
    sums.outdated += page.outdated
    sums.resealed += page.resealed
    left.push(...page.left)
    options.onProgress?.(table.name, sums.rows)
    after = page.last
  }
}

/** Processes a page in its own transaction; without one in a dry run, which writes nothing. */
function onePage<T>(
  { database }: Platform,
  { dryRun }: RotationOptions,
  work: (db: Queries, tx: Tx | null) => Promise<T>,
): Promise<T> {
  return dryRun ? work(database.reader, null) : database.transaction((tx) => work(tx, tx))
}

interface PageOfTable {
  vault: Vault
  table: SealedTable
  from: string | null
}

interface ResealedPage {
  /** The id of the last row; `null` without rows. */
  last: string | null
  rows: number
  /** Rows not sealed with the current key when they were read. */
  outdated: number
  resealed: number
  left: LeftRow[]
}

async function resealPage(
  db: Queries,
  tx: Tx | null,
  { vault, table, from }: PageOfTable,
): Promise<ResealedPage> {
  const rows = await table.page(db, vault, from, PAGE)
  const outdated = rows.filter((row) => !vault.isCurrent(row.sealed))
  const left: LeftRow[] = []
  let resealed = 0
  for (const row of outdated) {
    const problem = await problemWith(row, async (text) => {
      if (tx === null || (await row.reseal(tx, text))) resealed += 1
    })
    if (problem) left.push({ table: table.name, id: row.id, ...problem })
  }
  return { last: rows.at(-1)?.id ?? null, rows: rows.length, outdated: outdated.length, resealed, left }
}

async function problemWith(
  row: SealedRow,
  work: (text: string) => Promise<void>,
): Promise<Pick<LeftRow, 'problem' | 'keyMissing'> | null> {
  return problemOfUse(async () => work(await row.open()))
}

async function problemOfUse(
  use: () => Promise<void>,
): Promise<Pick<LeftRow, 'problem' | 'keyMissing'> | null> {
  try {
    await use()
    return null
  } catch (error) {
    if (error instanceof UnknownKeyError) return { problem: error.message, keyMissing: true }
    if (error instanceof IntegrityError) return { problem: error.message, keyMissing: false }
    throw error
  }
}

async function renewDigests(platform: Platform, table: Digested, options: RotationOptions) {
  const sums = { rows: 0, resealed: 0, left: [] as LeftRow[] }
  for (let after: readonly unknown[] | null = null; ; ) {
    const from: readonly unknown[] | null = after
    const page = await onePage(platform, options, async (db, tx) => {
      const { rows, last } = await pageOfRows(db, table, from, PAGE)
      const left: LeftRow[] = []
      let resealed = 0
      for (const row of rows.filter((each) => !isCurrentDigest(platform.keys, each))) {
        const problem = await problemOfUse(async () => {
          requireAuthentic(platform.keys, table, row)
          if (tx) await renewDigest(tx, table, row)
          resealed += 1
        })
        if (problem) left.push({ table, id: keyOf(table, row), ...problem })
      }
      return { last, rows: rows.length, resealed, left }
    })
    if (page.last === null) return sums
    sums.rows += page.rows
    sums.resealed += page.resealed
    sums.left.push(...page.left)
    options.onProgress?.(table, sums.rows)
    after = page.last
  }
}

async function resealMailboxes(platform: Platform, options: RotationOptions) {
  let rows = 0
  let resealed = 0
  for (let after: string | null = null; ; ) {
    const page = await onePage(platform, options, (db, tx) =>
      refreshMailboxes(platform, db, tx, { after, limit: PAGE }),
    )
    if (page.last === null) return { table: 'mailboxes', rows, resealed }
    rows += page.rows
    resealed += page.changed
    options.onProgress?.('mailboxes', rows)
    after = page.last
  }
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
