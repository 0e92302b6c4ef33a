import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { type Config, SettingError } from '../platform/config.ts'
import { dataFolder } from '../platform/data-folder.ts'

import type { SealStorage } from './seal-storage.ts'

/** Opens the storage; `null` when SEAL_STORAGE is not set. Throws `SettingError`. */
export async function openSealStorage(config: Config): Promise<SealStorage | null> {
  checkSealStorage(config)
  if (config.SEAL_STORAGE === undefined) return null
  const bucket = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(config.SEAL_STORAGE)
  if (bucket) {
    const { openS3SealStorage } = await import('./s3-seal-storage.ts')
    return openS3SealStorage(config, bucket[1] ?? '', (bucket[2] ?? '').replace(/\/*$/, ''))
  }
  const { openSealFolder } = await import('./seal-folder.ts')
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
