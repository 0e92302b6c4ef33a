import { dirname } from 'node:path'
import type { Config } from './config.ts'
import { sqliteFileOf } from './open-database.ts'

/** Where keys, exports and the sandbox's state live: DATA_DIR, else beside the SQLite file, else `./data`. */
export function dataFolder(config: Pick<Config, 'DATA_DIR' | 'DATABASE_URL'>): string {
  if (config.DATA_DIR) return config.DATA_DIR
  const file = sqliteFileOf(config.DATABASE_URL)
  return file === null ? './data' : dirname(file)
}
