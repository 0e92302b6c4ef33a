import type { Command } from 'commander'
import type { Page } from '../server/platform/api/page.ts'
import { DEFAULT_ROWS, rowLimit } from './command.ts'

/** The options of every list, newest first. */
export interface PageOptions {
  limit: number
  cursor?: string
}

/** Adds `--limit` and `--cursor` to a list command. */
export function addPageOptions(command: Command): Command {
  return command
    .option('--limit <n>', 'how many at most', rowLimit, DEFAULT_ROWS)
    .option('--cursor <text>', 'the next page: next_cursor of the one before')
}

/** Reads one page of rows that are sorted by id. Refuses what is no cursor with `validation_failed`. */
export async function readPage<Row extends { id: string }>(
  { limit, cursor }: PageOptions,
  /** Up to `limit` rows, newest first, before the id `before`. */
  read: (request: { before: string | null; limit: number }) => Promise<Row[]>,
): Promise<Page<Row>> {
  const { decodeCursor, encodeCursor, pageOf } = await import('../server/platform/api/page.ts')
  const { idParam } = await import('../shared/schemas/common.ts')
  const rows = await read({ before: decodeCursor(cursor, idParam), limit: limit + 1 })
  return pageOf(rows, limit, (last) => encodeCursor(last.id))
}
