import type { Application } from '../../shared/schemas/applications.ts'
import { type KeysetScan, pageItems, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { countApplications, readApplications } from './application-export.store.ts'
import { wireApplication } from './application-wire.service.ts'
import { shownApplications } from './applications.service.ts'

/** A creator's own applications, those to a merchant's offers, or all. */
export function scanApplications(platform: Platform, scope: ScanScope): KeysetScan<Application> {
  const db = platform.database.reader
  return {
    count: (step) => countApplications(db, scope, step),
    async read(step) {
      const rows = await shownApplications(platform, await readApplications(db, scope, step))
      return pageItems(step, rows, (row) => wireApplication(platform, row))
    },
  }
}
