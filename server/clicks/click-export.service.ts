import type { ExportedClick } from '../../shared/schemas/jobs.ts'
import { isoTime } from '../platform/clock.ts'
import { inPeriod, type KeysetScan, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { countClicks, readClicks } from './click-export.store.ts'

/** Clicks of a creator's links, of the links to a merchant's offers, or all; visits, bots and the rest. */
export function scanClicks(platform: Platform, scope: ScanScope): KeysetScan<ExportedClick> {
  const db = platform.database.reader
  return {
    count: (step) => countClicks(db, scope, step),
    async read(step) {
      const rows = await readClicks(db, scope, step)
      const items = rows.flatMap((row) =>
        inPeriod(step, row.created_at)
          ? [
              {
                id: row.id,
                affiliate_link_slug: row.slug ?? '',
                tracked: row.tracked === 1,
                kind: row.kind,
                created_at: isoTime(row.created_at),
              },
            ]
          : [],
      )
      return { items, last: rows.at(-1)?.id ?? null }
    },
  }
}
