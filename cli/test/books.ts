import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { raiseFlag } from '../../server/flags/flags.service.ts'
import type { TestDialect } from '../../server/test/testkit/databases.ts'
import { type Marketplace, openMarketplace, type Shop } from '../../server/test/testkit/marketplace.ts'
import { orderBody } from '../../server/test/testkit/orders.ts'
import { APP_KEY } from './run-affiliate.ts'
import { type EndedHere, runHere, type TerminalEnded, type TypeOptions, typeHere } from './run-here.ts'

/** A marketplace with a few sales, and the command line over its database. */
export interface Books {
  market: Marketplace
  shop: Shop
  otherShop: Shop
  creatorId: string
  /** Of the creator's link. */
  slug: string
  /** Runs a command over these books in this process. */
  affiliate(args: string[], environment?: Record<string, string>, input?: string): Promise<EndedHere>
  /** Runs it with `--json`, expects exit 0, and answers its document. */
  // biome-ignore lint/suspicious/noExplicitAny: the document of any command
  json(...args: string[]): Promise<any>
  /** Runs it, expects exit 0 and each of these on stdout, and returns that. */
  says(words: readonly string[], ...patterns: RegExp[]): Promise<string>
  /** Runs it, expects this exit code and these words on stderr. */
  refuses(words: readonly string[], why: RegExp, code?: number): Promise<EndedHere>
  /** Raises a flag about the creator. */
  flagCreator(summary?: string): Promise<unknown>
  /** What a process needs for commands over these books. */
  settings: Record<string, string>
  /** Runs it at a terminal. */
  type(args: string[], options?: TypeOptions): Promise<TerminalEnded>
}

/** Two shops that both have an order #1001: an accepted one of 4,999.00, and one without a reference. */
export async function openBooks(dialect: TestDialect): Promise<Books> {
  const market = await openMarketplace(dialect)
  // Commands go by the clock on the wall.
  market.clock.set(new Date().toISOString())
  const [shop, otherShop] = [await market.addShop('Chenab Lawn'), await market.addShop('Ravi Shawls')]
  const creator = await market.addCreator('Sana Mirza')
  const link = await market.addLink(shop, creator)
  await market.order(shop, link, 499_900, { name: '#1001', id: '6100000001009' })
  await market.order(shop, link, 4_000_000, { name: '#1002' })
  const createdAt = market.clock.now()
  await market.deliver(otherShop, orderBody({ price: 100_000, createdAt, name: '#1001' }))
  await market.deliver(otherShop, '{"id": "no order at all"}')
  await market.drainUntilIdle()
  const { url, folder } = market.bed.testDatabase
  const settings = { DATABASE_URL: url, APP_KEY, DATA_DIR: folder }
  const affiliate: Books['affiliate'] = (args, environment = {}, input = '') =>
    runHere(args, { ...settings, ...environment }, { input, folder })
  return {
    ...{ market, shop, otherShop, creatorId: creator.userId, slug: link.slug, affiliate, settings },
    type: (args, options = {}) =>
      typeHere(args, { folder, ...options, environment: { ...settings, ...options.environment } }),
    flagCreator(summary = 'To be looked at.') {
      const about = { subjectType: 'user', subjectId: creator.userId, evidence: {} } as const
      const flag = { kind: 'self_purchase', summary, ...about } as const
      return market.platform.database.transaction((tx) => raiseFlag(market.platform, tx, flag))
    },
    async says(words, ...patterns) {
      const { code, stdout, stderr } = await affiliate([...words])
      assert.is(code, 0, `${words.join(' ')}: ${stderr}`)
      for (const pattern of patterns) assert.match(stdout, pattern)
      return stdout
    },
    async refuses(words, why, code = 1) {
      const ended = await affiliate([...words])
      assert.is(ended.code, code, `${words.join(' ')}: ${ended.stderr}`)
      assert.match(ended.stderr, why)
      return ended
    },
    async json(...args) {
      const { code, stdout, stderr } = await affiliate([...args, '--json'])
      if (code !== 0) throw new Error(`affiliate ${args.join(' ')}: exit ${code}: ${stderr}`)
      return JSON.parse(stdout)
    },
  }
}

/** A suite of tests, one after the other, over such books. */
export function suiteOverBooks(name: string, dialect: TestDialect = 'sqlite') {
  const it = suite(name)
  const books = {} as Books
  it.before(async () => {
    Object.assign(books, await openBooks(dialect))
  })
  it.after(() => books.market?.close())
  return { it, books }
}
