import type { Caches } from './cache/caches.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { AppKeys } from './crypto/key-ring.ts'
import type { Vault } from './crypto/vault.ts'
import type { Database } from './database/database.ts'
import type { TamperedRow } from './database/protected-rows.ts'
import type { Ids } from './ids.ts'
import type { Logger } from './log.ts'
import type { Topics } from './topics.ts'

/** What every service needs: settings, the database, time, ids, secrets. Created once, in `app.ts`. */
export interface Platform {
  readonly config: Config
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly keys: AppKeys
  readonly vault: Vault
  readonly log: Logger
  readonly topics: Topics
  readonly caches: Caches
  /** Flags a protected row that was refused because it was changed outside of the service, once. Never throws. */
  readonly reportTampered: (row: TamperedRow) => Promise<void>
  /** The address that affiliate links start with, without a trailing slash. */
  readonly publicBaseUrl: string
}
