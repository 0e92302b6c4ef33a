import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Insertable } from 'kysely'
import { type App, openApp } from '../../server/app.ts'
import { startExport } from '../../server/exports/exports.service.ts'
import { runNextExport } from '../../server/exports/run-export.service.ts'
import { migrate } from '../../server/migrator.ts'
import type { Schema } from '../../server/platform/database/schema.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { openFolder } from '../../server/platform/storage/storage.ts'
import { buildExportWorld, saleRow } from '../../server/test/testkit/export-world.ts'
import { type ExportFormat, exportFormat } from '../../shared/schemas/jobs.ts'

/*
 * node scripts/bench/exports.ts [--rows 1000000] [--format csv|ndjson]
 *
 * Fills a temporary SQLite database with sales, exports them as their merchant, and prints time and memory. Ends with 1
 * when the export takes more memory than it may, or when a row is missing. The filling runs in a process of its own,
 * whose memory must not hide the export's.
 */
const MOST_GROWTH_MB = 150
const ROWS_AT_ONCE = 1500

const MB = 1024 * 1024

function open(folder: string): Promise<App> {
  const environment = { DATABASE_URL: `sqlite:${join(folder, 'bench.db')}`, LOG_LEVEL: 'silent' }
  return openApp({ create: true, environment })
}

/** Answers the id of the merchant whose sales they are. */
async function fill(platform: Platform, count: number): Promise<string> {
  const world = await buildExportWorld(platform)
  // As large as a real one: exports must not read it.
  const receipt = JSON.stringify({ facts: 'x'.repeat(1500) })
  const [link] = world.links
  for (let done = 0; done < count; done += ROWS_AT_ONCE) {
    const rows: Insertable<Schema['sales']>[] = Array.from(
      { length: Math.min(ROWS_AT_ONCE, count - done) },
      () => ({ ...saleRow(platform, world, link), receipt }),
    )
    await platform.database.transaction((tx) => tx.insertInto('sales').values(rows).execute())
    if (done % 150_000 === 0) process.stderr.write(`\rfilled ${done}`)
  }
  process.stderr.write(`\rfilled ${count}\n`)
  return world.kurta.userId
}

/** The greatest resident size, and the longest that nothing else had its turn, while `work` runs. */
async function watch(work: () => Promise<unknown>) {
  globalThis.gc?.()
  const before = process.memoryUsage().rss
  let most = before
  let longestStall = 0
  let last = performance.now()
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss)
    const now = performance.now()
    longestStall = Math.max(longestStall, now - last)
    last = now
  }, 5)
  const start = performance.now()
  await work()
  const seconds = (performance.now() - start) / 1000
  clearInterval(timer)
  return { seconds, beforeMb: before / MB, growthMb: (most - before) / MB, longestStall }
}

async function countLines(file: string): Promise<number> {
  let lines = 0
  const reader = createInterface({ input: createReadStream(file) })
  reader.on('line', () => {
    lines += 1
  })
  await once(reader, 'close')
  return lines
}

async function fillInFolder(folder: string, rows: number): Promise<void> {
  const app = await open(folder)
  await migrate(app.database)
  process.stdout.write(await fill(app.platform, rows))
  await app.close()
}

function fillElsewhere(folder: string, rows: number): string {
  const itself = fileURLToPath(import.meta.url)
  const args = [itself, '--fill', folder, '--rows', String(rows)]
  return execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

async function bench(folder: string, rows: number, format: ExportFormat): Promise<boolean> {
  const merchant = { userId: fillElsewhere(folder, rows), role: 'merchant' } as const
  const { platform, close } = await open(folder)
  const { id } = await startExport(platform, merchant, { resource: 'sales', format, from: null, to: null })
  const storage = openFolder(folder)
  const seen = await watch(() => runNextExport(platform, storage, new AbortController().signal))
  await close()
  const file = join(folder, `${id}-1.${format}`)
  // The world brings two sales of its own, CSV a header.
  const expected = rows + 2 + (format === 'csv' ? 1 : 0)
  const written = await countLines(file)
  console.log(`rows             ${rows}`)
  console.log(`file             ${(statSync(file).size / MB).toFixed(0)} MB ${format}, ${written} lines`)
  console.log(`time             ${seen.seconds.toFixed(1)} s, ${Math.round(rows / seen.seconds)} rows/s`)
  console.log(`memory before    ${seen.beforeMb.toFixed(0)} MB resident`)
  console.log(`memory growth    ${seen.growthMb.toFixed(0)} MB resident at most (${MOST_GROWTH_MB} allowed)`)
  console.log(`longest stall    ${seen.longestStall.toFixed(0)} ms of the event loop`)
  if (written !== expected) console.error(`expected ${expected} lines`)
  return written === expected && seen.growthMb < MOST_GROWTH_MB
}

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    format: { type: 'string', default: 'csv' },
    fill: { type: 'string' },
  },
})
const rows = Number(values.rows)
if (values.fill !== undefined) await fillInFolder(values.fill, rows)
else {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-bench-'))
  try {
    process.exitCode = (await bench(folder, rows, exportFormat.parse(values.format))) ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
