import type { Config } from '../config.ts'
import { type FileStorage, openFolder } from './storage.ts'

/** The storage at `s3://BUCKET/PREFIX`, or else in a folder. */
export async function openStorage(config: Config, place: string): Promise<FileStorage> {
  const bucket = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(place)
  if (!bucket) return openFolder(place)
  // Loaded only when it is used: the S3 client takes longer to load than a whole command.
  const { openBucket } = await import('./s3-storage.ts')
  return openBucket(config, bucket[1] ?? '', (bucket[2] ?? '').replace(/\/*$/, ''))
}
