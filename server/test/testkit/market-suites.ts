import { suite, type Test } from 'uvu'
import type { Clock } from '../../platform/clock.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Platform } from '../../platform/platform.ts'
import { type TestDialect, testDialects } from './databases.ts'
import { type Marketplace, openMarketplace, type Trade } from './marketplace.ts'
import { PLAYS_ALL } from './proof-size.ts'
import type { ManualClock, Testbed } from './testbed.ts'

/** What each test of a marketplace suite receives. */
export interface MarketContext {
  market: Marketplace
  bed: Testbed
  platform: Platform
  clock: ManualClock
}

export interface MarketSuiteOptions {
  settings?: Record<string, string>
  /** Ids that follow the suite's clock, for code that reads the time in ids. */
  idsOf?: (clock: Clock) => Ids
  /** One marketplace for all tests of the suite instead of one for each test. */
  shared?: boolean
  /** Checks all invariants at the end of each test. */
  verify?: boolean
  dialects?: readonly TestDialect[]
}

export interface MarketSuite<Context> {
  it: Test<MarketContext & Context>
  dialect: TestDialect
}

/**
 * One suite for each database, with a fresh marketplace: `name on sqlite`, `name on postgresql`. `Context` is what the
 * suite's own hooks add. The suite opens and closes the marketplace; the file calls `it.run()`.
 */
export function marketSuites<Context = unknown>(
  name: string,
  { settings, idsOf, shared = false, verify = false, dialects = testDialects() }: MarketSuiteOptions = {},
): MarketSuite<Context>[] {
  return dialects.map((dialect) => {
    const it = suite<MarketContext & Context>(`${name} on ${dialect}`)
    const open = async (context: MarketContext) => {
      const market = await openMarketplace(dialect, settings, idsOf)
      const { bed, platform, clock } = market
      Object.assign(context, { market, bed, platform, clock })
    }
    const close = ({ market }: MarketContext) => market?.close()
    if (shared) {
      it.before(open)
      it.after(close)
    } else {
      it.before.each(open)
      it.after.each(close)
    }
    // Tests over one marketplace build on each other.
    const part = shared ? it : partly(it, dialect)
    const added = (...[name, work]: Parameters<Test<MarketContext & Context>>) =>
      part(name, async (context) => {
        await work(context)
        if (verify) await context.market.verify()
      })
    return { it: Object.assign(added, it), dialect }
  })
}

/** A hook for `before` or `before.each`: adds a `Trade` to the context. */
export async function addTrade(context: MarketContext & Trade): Promise<void> {
  Object.assign(context, await context.market.addTrade())
}

/** Of the tests of a suite for PostgreSQL, `npm test` plays the first of so many. */
const PLAYED_OF = 4

/**
 * Adds only a part of the tests to a suite for PostgreSQL, if what they show hardly depends on the database. A run of named files and the
 * proof "both databases" play all.
 */
export function partly<Context>(it: Test<Context>, dialect: TestDialect): Test<Context> {
  if (PLAYS_ALL || dialect === testDialects()[0]) return it
  let count = 0
  const added = (...test: Parameters<Test<Context>>) => {
    if (count++ % PLAYED_OF === 0) it(...test)
  }
  return Object.assign(added, it)
}
