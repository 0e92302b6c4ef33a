import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { ENTRY, environmentOf } from '../../cli/test/run-affiliate.ts'
import { sealLedger } from '../../server/ledger/seals/seals.service.ts'
import { DIALECTS, type TestDialect } from '../../server/test/testkit/databases.ts'
import { type Marketplace, openMarketplace } from '../../server/test/testkit/marketplace.ts'
import { TESTBED_KEY } from '../../server/test/testkit/testbed.ts'
import { startPostgres } from '../testing/postgres.ts'
import { fillBooks } from './verify-books.ts'

/*
 * node scripts/bench/verify.ts --database sqlite|postgresql [--sales 1000000]
 *
 * Fills a temporary database with books that hold, has `affiliate ledger verify` check them in a process of its own, and
 * prints what each check took, the whole time and the most memory. Ends with 1 when a check fails or it takes too long.
 */
const MOST_SECONDS_A_MILLION = 60
const MOST_MB = 600

interface Verified {
  seconds: number
  /** Resident at most; of PostgreSQL's own processes nothing. */
  megabytes: number
  code: number | null
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
  return { seconds: (performance.now() - start) / 1000, megabytes, code, items: JSON.parse(output).items }
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

async function bench(market: Marketplace, sales: number): Promise<boolean> {
  const start = performance.now()
  await fillBooks(market, sales, (done) => process.stderr.write(`\rfilled ${done}`))
  await sealLedger(market.platform)
  console.log(`\rfilled           ${sales} sales in ${((performance.now() - start) / 1000).toFixed(0)} s`)
  const verified = await verify(market.bed.testDatabase.url)
  report(verified)
  const most = MOST_SECONDS_A_MILLION * Math.max(1, sales / 1_000_000)
  return verified.code === 0 && verified.seconds < most && verified.megabytes < MOST_MB
}

async function onDatabase(dialect: TestDialect, sales: number): Promise<boolean> {
  const server = dialect === 'postgresql' ? startPostgres(undefined, { asInUse: true }) : null
  try {
    if (server) process.env.TEST_POSTGRES_URL = await server.url
    const market = await openMarketplace(dialect)
    try {
      return await bench(market, sales)
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
  },
})
const dialect = DIALECTS.find((name) => name === values.database)
if (!dialect) throw new Error(`--database must be one of ${DIALECTS.join(', ')}`)
process.exitCode = (await onDatabase(dialect, Number(values.sales))) ? 0 : 1
