import { join } from 'node:path'
import { type Config, dataFolder } from '../platform/config.ts'
import type { ExportStorage } from './export-storage.ts'

const opened = new WeakMap<Config, Promise<ExportStorage>>()

/** The storage that the settings name, made once for each set of settings. */
export function exportStorage(config: Config): Promise<ExportStorage> {
  const known = opened.get(config)
  if (known) return known
  const storage = openStorage(config)
  opened.set(config, storage)
  return storage
}

/** Only the one that is asked for is loaded: the S3 client alone takes longer than a command's whole start. */
async function openStorage(config: Config): Promise<ExportStorage> {
  if (config.EXPORT_STORAGE === 's3') {
    const { openS3Storage } = await import('./s3-storage.ts')
    return openS3Storage({
      endpoint: config.S3_ENDPOINT,
      region: config.S3_REGION,
      bucket: config.S3_BUCKET ?? '',
      accessKeyId: config.S3_ACCESS_KEY_ID ?? '',
      secretAccessKey: config.S3_SECRET_ACCESS_KEY ?? '',
      forcePathStyle: config.S3_FORCE_PATH_STYLE,
    })
  }
  const { openLocalStorage } = await import('./local-storage.ts')
  return openLocalStorage(join(dataFolder(config), 'exports'))
}
