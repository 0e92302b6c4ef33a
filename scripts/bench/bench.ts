import { readFileSync, writeFileSync } from 'node:fs'
import { Client } from 'pg'
import { startPostgres, type TestPostgres } from '../testing/postgres.ts'
import { type Bed, openBed } from './bed.ts'
import type { Comparison, Findings, Measurement } from './figures.ts'
import { describeMachine } from './machine.ts'
import { type BenchDialect, type BenchOptions, parseOptions, USAGE } from './options.ts'
import { benchClose } from './paths/close.ts'
import { benchDrain } from './paths/drain.ts'
import { benchGrowth } from './paths/growth.ts'
import { benchOffers } from './paths/offers.ts'
import { benchRedirect } from './paths/redirect.ts'
import { benchStartup } from './paths/startup.ts'
import { benchWebhooks } from './paths/webhooks.ts'
import { markdownOf, textOf } from './table.ts'
import { comeRoundLog } from './used-log.ts'

type Bench = (bed: Bed) => Promise<(Comparison | Measurement)[]>

const BENCHES: Record<string, Bench> = {
  redirect: benchRedirect,
  webhooks: benchWebhooks,
  drain: benchDrain,
  offers: benchOffers,
  close: benchClose,
  startup: benchStartup,
  growth: benchGrowth,
}
/** Takes minutes and gigabytes, so it runs only when it is named. */
const ONLY_BY_NAME = 'growth'

async function runAll(options: BenchOptions, postgresUrl: string | null): Promise<Findings> {
  const names =
    options.names.length > 0 ? options.names : Object.keys(BENCHES).filter((name) => name !== ONLY_BY_NAME)
  const found: (Comparison | Measurement)[] = []
  for (const name of names) {
    for (const dialect of options.databases) {
      process.stderr.write(`${name} on ${dialect} …\n`)
      try {
        found.push(...(await runOne(name, dialect, options, postgresUrl)))
      } catch (error) {
        console.error(`${name} on ${dialect}:`, error)
        process.exitCode = 1
      }
    }
  }
  return {
    comparisons: found.filter((one) => 'path' in one),
    measurements: found.filter((one) => 'what' in one),
  }
}

async function runOne(
  name: string,
  dialect: BenchDialect,
  options: BenchOptions,
  postgresUrl: string | null,
): Promise<(Comparison | Measurement)[]> {
  const bed = await openBed(dialect, options, postgresUrl)
  try {
    return (await BENCHES[name]?.(bed)) ?? []
  } finally {
    await bed.close()
  }
}

async function versionOf(postgresUrl: string): Promise<string> {
  const client = new Client({ connectionString: postgresUrl })
  await client.connect()
  try {
    const { rows } = await client.query<{ server_version: string }>('show server_version')
    return rows[0]?.server_version ?? '?'
  } finally {
    await client.end()
  }
}

const GUIDE = new URL('../../server/guides/benchmarks.md', import.meta.url)

/** Replaces what is between the guide's marks. */
function writeGuide(table: string): void {
  const [before, rest = ''] = readFileSync(GUIDE, 'utf8').split(/(?<=<!-- bench -->)/)
  const after = rest.slice(rest.indexOf('<!-- end of bench -->'))
  writeFileSync(GUIDE, `${before}\n\n${table}\n\n${after}`)
}

function readOptions(): BenchOptions | null {
  try {
    return parseOptions(process.argv.slice(2), Object.keys(BENCHES))
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    console.error(USAGE)
    process.exitCode = 1
    return null
  }
}

const options = readOptions()
if (options) {
  const postgres: TestPostgres | null = options.databases.includes('postgresql')
    ? startPostgres(undefined, { asInUse: true })
    : null
  try {
    const url = (await postgres?.url) ?? null
    if (url !== null) await comeRoundLog(url)
    const findings = await runAll(options, url)
    const machine = describeMachine(url === null ? null : await versionOf(url))
    console.log(textOf(machine, findings))
    if (options.json !== null)
      writeFileSync(options.json, `${JSON.stringify({ machine, ...findings }, null, 2)}\n`)
    if (options.guide) writeGuide(markdownOf(machine, findings))
  } finally {
    await postgres?.stop()
  }
}
