import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { type Config, dataFolder, SettingError } from '../../platform/config.ts'
import type { Queries } from '../../platform/database/database.ts'
import type { Platform } from '../../platform/platform.ts'
import { openStorage } from '../../platform/storage/open-storage.ts'
import { type FileStorage, readText } from '../../platform/storage/storage.ts'
import { findSeal, lastSeal, type Seal } from './seals.store.ts'

/** Another seal is stored under a seal's name: the database was rolled back, or other seals were made. */
export class SealConflict extends Error {
  constructor(name: string) {
    super(`the seal storage holds another seal as ${name}: run "affiliate ledger verify"`)
    this.name = 'SealConflict'
  }
}

/** Opens the write-once place outside the database that SEAL_STORAGE names; `null` when SEAL_STORAGE is not set. Throws `SettingError`. */
export async function openSealStorage(config: Config): Promise<FileStorage | null> {
  checkSealStorage(config)
  const place = config.SEAL_STORAGE
  if (place === undefined) return null
  return openStorage(config, place.startsWith('s3://') ? place : resolve(place))
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

async function storeMissing(db: Queries, storage: FileStorage, signal?: AbortSignal): Promise<number> {
  const last = (await lastSeal(db))?.position ?? 0
  const { position: newest, text } = await newestStored(storage, last)
  const whole = newest === 0 ? '' : sealText(await sealAt(db, newest))
  if (text !== null && !whole.startsWith(text)) throw new SealConflict(sealName(newest))
  // What a crash left of a seal is completed.
  const first = text === null || text === whole ? newest + 1 : newest
  for (let position = first; position <= last; position += 1) {
    if (signal?.aborted) return position - first
    const isStored = await storage.create(sealName(position), sealText(await sealAt(db, position)))
    if (!isStored) throw new SealConflict(sealName(position))
  }
  return last - first + 1
}

/** The last of the seals up to this position that is stored, maybe in part; 0 without one. */
async function newestStored(storage: FileStorage, last: number) {
  for (let position = last; position > 0; position -= 1) {
    const text = await readText(storage, sealName(position))
    if (text !== null) return { position, text }
  }
  return { position: 0, text: null }
}

async function sealAt(db: Queries, position: number): Promise<Seal> {
  const seal = await findSeal(db, position)
  if (!seal) throw new Error(`seal ${position} is missing: run "affiliate ledger verify"`)
  return seal
}

/**
 * Compares the seals of the database with those that SEAL_STORAGE keeps: it must not hold a later one, and the newest that both
 * have must be the same; by their chain all before it are then the same too. Seals that are not stored yet are no breach.
 * Answers how many `rows` are stored, and the first seal that is `missing`.
 */
export async function compareWithStorage(db: Queries, storage: FileStorage) {
  const last = (await lastSeal(db))?.position ?? 0
  const breaches: { subject: string; detail: string }[] = []
  if ((await readText(storage, sealName(last + 1))) !== null) {
    const end = last === 0 ? 'has no seals' : `ends with seal ${last}`
    const detail = `the seal storage holds it, and the database ${end}: the database was rolled back, or seals were removed`
    breaches.push({ subject: `seal ${last + 1}`, detail })
  }
  const { position: newest, text } = await newestStored(storage, last)
  if (newest > 0 && text !== sealText(await sealAt(db, newest))) {
    const detail =
      'the seal storage holds another one: the journal was rewritten, or another database uses that storage'
    breaches.push({ subject: `seal ${newest}`, detail })
  }
  return { rows: newest, breaches, missing: newest < last ? await sealAt(db, newest + 1) : null }
}
