// long
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { stripVTControlCharacters } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres } from '../../server/test/testkit/databases.ts'
import { type Books, openBooks } from './books.ts'
import type { PtyEnded } from './run-in-pty.ts'
import { makeStuck } from './stuck-table.ts'

const it = suite('what a command does, for those who wait')
let books: Books
it.before(async () => {
  books = await openBooks('postgresql')
})
it.after(() => books?.market.close())

/** Shown for one second, when a person begins to wonder, and longer than that the others have waited. */
const WELL_BEYOND_MS = 1200
const CLEARED = '\r\u001b[K'

/** A progress line came, was cleared, and nothing of it is left on what is printed behind it. */
function judge({ screen, code }: PtyEnded, said: RegExp, expected = 0): string {
  assert.is(code, expected, screen)
  const parts = screen.split(CLEARED)
  assert.ok(parts.length >= 3, `no progress that was cleared: ${JSON.stringify(screen)}`)
  assert.match(parts[1] ?? '', said)
  for (const part of parts.slice(0, -1)) assert.not.match(part, /\n/, 'a line of it was left standing')
  return stripVTControlCharacters(parts.at(-1) ?? '')
}

interface Case {
  args: string[]
  at: string
  what?: 'reads' | 'writes'
  said: RegExp
  printed: RegExp
}

const CASES: Record<string, Case> = {
  'ledger verify': {
    args: [],
    at: 'payouts',
    said: /^check \d+ of \d+: [a-z-]+$/,
    printed: /^All \d+ invariants hold/,
  },
  'webhooks reprocess': {
    args: ['--dry-run'],
    at: 'inbound_bodies',
    said: /^deciding the stored events again$/,
    printed: /^4 events, 3 decided again\./,
  },
  'billing close': {
    args: ['--as-of', '2099-01-01', '--yes'],
    at: 'billing_cycles',
    what: 'writes',
    said: /^cycle 1 of 1$/,
    printed: /^Cycle +Becomes +Merchant(.|\n)*1 closed, 0 extended/,
  },
}

for (const [name, { args, at, what, said, printed }] of Object.entries(CASES)) {
  it(`"${name}" says it at a terminal, and nowhere else`, async () => {
    const words = [...name.split(' '), ...args]
    /** Runs it while it is kept waiting for as long as it takes to show its progress. */
    const whileStuck = async <T>(run: () => Promise<T>): Promise<T> => {
      const table = await makeStuck(books.market.bed.testDatabase, at, what)
      const letGo = table.waitedFor(1, WELL_BEYOND_MS).finally(() => table.letGo())
      const [ended] = await Promise.all([run(), letGo])
      return ended
    }
    assert.match(judge(await whileStuck(() => books.type(words)), said), printed)
    if (what === 'writes') return
    const piped = await whileStuck(() => books.affiliate(words))
    assert.equal([piped.code, piped.stderr], [0, ''])
    const json = await whileStuck(() => books.type([...words, '--json']))
    assert.is(json.code, 0)
    JSON.parse(json.screen)
  })
}

it('"webhooks replay" says it, and what went wrong stands on a line of its own', async () => {
  const { promise: seen, resolve: see } = Promise.withResolvers<void>()
  const slow = createServer(async (request, response) => {
    if (request.url === '/readyz') return void response.end('{"environment":"test"}')
    await seen
    response.writeHead(503).end('{"code":"unavailable","detail":"too busy"}')
  })
  await once(slow.listen(0, '127.0.0.1'), 'listening')
  try {
    const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`
    const domain = `s${books.shop.merchantId}.myshopify.com`
    const ended = await books.type(
      ['webhooks', 'replay', 'draft-order', '--store', domain, '--url', url, '--times', '2'],
      { typed: [{ after: /sending draft-order \(1 of 2\)/, keys: '', onSeen: see }] },
    )
    const rest = judge(ended, /^sending draft-order \(1 of 2\)$/, 1)
    assert.match(rest, /^ *Fixture +Answers(.|\n)*\naffiliate: The service refused draft-order\.\n$/)
  } finally {
    slow.closeAllConnections()
    slow.close()
  }
})

onPostgres(it).run()
