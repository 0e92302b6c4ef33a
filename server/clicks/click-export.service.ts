import type { ExportedClick } from '../../shared/schemas/jobs.ts'
import { toWireTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import { inPeriod, type Walk, type WalkScope } from '../platform/walk.ts'
import { countClicks, readClicks } from './click-export.store.ts'

/** Clicks of a creator's links, of the links to a merchant's offers, or all; visits, bots and the rest. */
export function walkClicks(platform: Platform, scope: WalkScope): Walk<ExportedClick> {
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
                created_at: toWireTime(row.created_at),
              },
            ]
          : [],
      )
      return { items, last: rows.at(-1)?.id ?? null }
    },
  }
}
