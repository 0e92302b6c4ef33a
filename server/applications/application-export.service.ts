import type { Application } from '../../shared/schemas/applications.ts'
import type { Platform } from '../platform/platform.ts'
import { itemsOf, type Walk, type WalkScope } from '../platform/walk.ts'
import { countApplications, readApplications } from './application-export.store.ts'
import { wireApplication } from './application-wire.service.ts'
import { shownApplications } from './applications.service.ts'

/** A creator's own applications, those to a merchant's offers, or all. */
export function walkApplications(platform: Platform, scope: WalkScope): Walk<Application> {
  const db = platform.database.reader
  return {
    count: (step) => countApplications(db, scope, step),
    async read(step) {
      const rows = await shownApplications(platform, await readApplications(db, scope, step))
      return itemsOf(step, rows, (row) => wireApplication(platform, row))
    },
  }
}
