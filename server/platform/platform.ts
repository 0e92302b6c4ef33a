import type { Caches } from './caches.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { Database } from './database.ts'
import type { Ids } from './ids.ts'
import type { AppKeys } from './key-ring.ts'
import type { Logger } from './log.ts'
import type { Signals } from './signals.ts'
import type { Vault } from './vault.ts'

/** What every service is given: settings, the database, time, ids, secrets. Made once, in `app.ts`. */
export interface Platform {
  readonly config: Config
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
  readonly keys: AppKeys
  readonly vault: Vault
  readonly log: Logger
  readonly signals: Signals
  readonly caches: Caches
  /** The address that affiliate links start with, without a slash at its end. */
  readonly publicBaseUrl: string
}
