import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { ENTRY, environmentOf } from '../../cli/test/run-affiliate.ts'
import { sealLedger } from '../../server/ledger/seals/seals.service.ts'
import { simulatedIds } from '../../server/test/simulation/simulated-ids.ts'
import { DIALECTS, type TestDialect } from '../../server/test/testkit/databases.ts'
import { type Marketplace, openMarketplace } from '../../server/test/testkit/marketplace.ts'
import { TESTBED_KEY } from '../../server/test/testkit/testbed.ts'
import { startPostgres } from '../testing/postgres.ts'
import { fillBooks } from './verify-books.ts'

/*
 * node scripts/bench/verify.ts --database sqlite|postgresql [--sales 1000000] [--new 10000]
 *
 * Fills a temporary database with books that hold and has `affiliate ledger verify` check them in a process of its own, first all of
 * them, then what is new. Prints the time of each check, the whole time and the most memory. Exit 1: a check fails or takes too long.
 */
const MAX_SECONDS_PER_MILLION = 120
const MAX_SECONDS_OF_NEW = 5
const MOST_MB = 600

interface Verified {
  seconds: number
  /** Resident at most; of PostgreSQL's own processes nothing. */
  megabytes: number
  code: number | null
  full: boolean
  mark_stored: boolean
  items: { name: string; rows: number; breaches: unknown[]; ms: number }[]
}

/** The most that a process ever had resident, as Linux keeps it; 0 elsewhere. */
function peakMegabytes(pid: number): number {
  try {
    const found = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return Number(found?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

async function verify(url: string): Promise<Verified> {
  const start = performance.now()
  const child = spawn(process.execPath, [ENTRY, 'ledger', 'verify', '--json'], {
    env: environmentOf({ DATABASE_URL: url, APP_KEY: TESTBED_KEY.toString('base64') }),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let megabytes = 0
  const sampler = setInterval(() => {
    megabytes = Math.max(megabytes, peakMegabytes(child.pid ?? 0))
  }, 50)
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  clearInterval(sampler)
  return { ...JSON.parse(output), seconds: (performance.now() - start) / 1000, megabytes, code }
}

function report(verified: Verified): void {
  for (const { name, rows, breaches, ms } of verified.items) {
    console.log(
      `${name.padEnd(24)} ${String(rows).padStart(9)} rows ${String(breaches.length).padStart(4)} breaches ${String(ms).padStart(7)} ms`,
    )
  }
  console.log(`time             ${verified.seconds.toFixed(1)} s (exit ${verified.code})`)
  console.log(`memory           ${verified.megabytes.toFixed(0)} MB resident at most (${MOST_MB} allowed)`)
}

async function bench(market: Marketplace, sales: number, more: number): Promise<boolean> {
  const start = performance.now()
  const sellMore = await fillBooks(market, sales, (done) => process.stderr.write(`\rfilled ${done}`))
  await sealLedger(market.platform)
  console.log(`\rfilled           ${sales} sales in ${((performance.now() - start) / 1000).toFixed(0)} s`)
  const { url } = market.bed.testDatabase
  const full = await verify(url)
  report(full)
  market.clock.set(new Date().toISOString())
  await sellMore(more)
  const sinceMark = await verify(url)
  console.log(`with ${more} new sales:`)
  report(sinceMark)
  const max = MAX_SECONDS_PER_MILLION * Math.max(1, sales / 1_000_000)
  return (
    full.code === 0 &&
    full.mark_stored &&
    full.seconds < max &&
    full.megabytes < MOST_MB &&
    sinceMark.code === 0 &&
    !sinceMark.full &&
    sinceMark.seconds < MAX_SECONDS_OF_NEW
  )
}

async function onDatabase(dialect: TestDialect, sales: number, more: number): Promise<boolean> {
  const server = dialect === 'postgresql' ? startPostgres(undefined, { asInUse: true }) : null
  try {
    if (server) process.env.TEST_POSTGRES_URL = await server.url
    const market = await openMarketplace(dialect, {}, simulatedIds)
    // Months are passed below, and all of that must be before the verification.
    market.clock.set('2026-01-01T00:00:00Z')
    try {
      return await bench(market, sales, more)
    } finally {
      await market.close()
    }
  } finally {
    await server?.stop()
  }
}

const { values } = parseArgs({
  options: {
    database: { type: 'string', default: 'sqlite' },
    sales: { type: 'string', default: '1000000' },
    new: { type: 'string', default: '10000' },
  },
})
const dialect = DIALECTS.find((name) => name === values.database)
if (!dialect) throw new Error(`--database must be one of ${DIALECTS.join(', ')}`)
process.exitCode = (await onDatabase(dialect, Number(values.sales), Number(values.new))) ? 0 : 1
