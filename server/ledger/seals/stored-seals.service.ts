import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { type Config, dataFolder, SettingError } from '../../platform/config.ts'
import type { Queries } from '../../platform/database/database.ts'
import type { Platform } from '../../platform/platform.ts'
import { openSealFolder, SealConflict, type SealStorage } from './seal-storage.ts'
import { findSeal, lastSeal, type Seal } from './seals.store.ts'

/** Opens the storage; `null` when SEAL_STORAGE is not set. Throws `SettingError`. */
export async function openSealStorage(config: Config): Promise<SealStorage | null> {
  checkSealStorage(config)
  if (config.SEAL_STORAGE === undefined) return null
  const bucket = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(config.SEAL_STORAGE)
  if (bucket) {
    const { openS3SealStorage } = await import('./s3-seal-storage.ts')
    return openS3SealStorage(config, bucket[1] ?? '', (bucket[2] ?? '').replace(/\/*$/, ''))
  }
  return openSealFolder(resolve(config.SEAL_STORAGE))
}

/** Refuses a folder in DATA_DIR, which is as easy to change as the database. Throws `SettingError`. */
export function checkSealStorage(config: Config): void {
  const place = config.SEAL_STORAGE
  if (place === undefined || place.startsWith('s3://')) return
  const data = realFolder(dataFolder(config))
  const folder = realFolder(place)
  if (folder !== data && !folder.startsWith(data + sep)) return
  throw new SettingError(
    'SEAL_STORAGE',
    `is inside DATA_DIR (${data}); name a folder on another disk or machine, or s3://BUCKET/PREFIX`,
  )
}

/** Without symbolic links, also where the last folders do not exist yet. */
function realFolder(path: string): string {
  const whole = resolve(path)
  if (existsSync(whole)) return realpathSync(whole)
  const parent = dirname(whole)
  return parent === whole ? whole : join(realFolder(parent), whole.slice(parent.length))
}

/** In the order of their positions, also when sorted as text. */
export function sealName(position: number): string {
  return `seal-${String(position).padStart(10, '0')}.json`
}

/** What is stored of a seal, the same on every try. */
export function sealText({ position, sealedAt, digest }: Seal): string {
  return `${JSON.stringify({ position, sealed_at: new Date(sealedAt).toISOString(), digest })}\n`
}

/**
 * Stores every seal that SEAL_STORAGE lacks, in order, so that the last one there tells what is missing. What fails stays
 * missing until the next call. Answers how many were stored; `null` when SEAL_STORAGE is not set. Throws `SealConflict` when
 * another seal is stored in a seal's place, and the storage's own errors.
 */
export async function storeSeals(
  { config, database }: Platform,
  signal?: AbortSignal,
): Promise<number | null> {
  const storage = await openSealStorage(config)
  if (!storage) return null
  try {
    return await storeMissing(database.reader, storage, signal)
  } finally {
    storage.close()
  }
}

async function storeMissing(db: Queries, storage: SealStorage, signal?: AbortSignal): Promise<number> {
  const last = (await lastSeal(db))?.position ?? 0
  let stored = last
  while (stored > 0 && !(await isStored(db, storage, stored))) stored -= 1
  for (let position = stored + 1; position <= last; position += 1) {
    if (signal?.aborted) return position - 1 - stored
    await storage.create(sealName(position), sealText(await sealAt(db, position)))
  }
  return last - stored
}

async function isStored(db: Queries, storage: SealStorage, position: number): Promise<boolean> {
  const name = sealName(position)
  const found = await storage.read(name)
  const text = sealText(await sealAt(db, position))
  if (found === null || found === text) return found !== null
  // What a crash left of this very text is written again.
  if (text.startsWith(found)) return false
  throw new SealConflict(name)
}

async function sealAt(db: Queries, position: number): Promise<Seal> {
  const seal = await findSeal(db, position)
  if (!seal) throw new Error(`seal ${position} is missing: run "affiliate ledger verify"`)
  return seal
}

export interface StoredSeals {
  /** Seals of the database that are stored. */
  rows: number
  breaches: { subject: string; detail: string }[]
  /** The first seal of the database that is not stored yet; `null` when all are. */
  missing: Seal | null
}

/**
 * Compares the seals of the database with those that SEAL_STORAGE keeps: it must not hold a later one, and the newest that both
 * have must be the same; by their chain all before it are then the same too. Seals that are not stored yet are no breach.
 */
export async function compareWithStorage(db: Queries, storage: SealStorage): Promise<StoredSeals> {
  const last = (await lastSeal(db))?.position ?? 0
  const breaches: StoredSeals['breaches'] = []
  if ((await storage.read(sealName(last + 1))) !== null) {
    const end = last === 0 ? 'has no seals' : `ends with seal ${last}`
    const detail = `the seal storage holds it, and the database ${end}: the database was rolled back, or seals were removed`
    breaches.push({ subject: `seal ${last + 1}`, detail })
  }
  let newest = last
  let stored: string | null = null
  while (newest > 0 && stored === null) {
    stored = await storage.read(sealName(newest))
    if (stored === null) newest -= 1
  }
  if (newest > 0 && stored !== sealText(await sealAt(db, newest))) {
    const detail =
      'the seal storage holds another one: the journal was rewritten, or another database uses that storage'
    breaches.push({ subject: `seal ${newest}`, detail })
  }
  return { rows: newest, breaches, missing: newest < last ? await sealAt(db, newest + 1) : null }
}
