// long
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { stripVTControlCharacters } from 'node:util'
import * as assert from 'uvu/assert'
import { assertNone } from '../../server/test/testkit/pluck.ts'
import { suiteOverBooks } from './books.ts'
import type { TerminalEnded } from './run-here.ts'

const { it, books } = suiteOverBooks('what a command does, for those who wait')
const CLEARED = '\r\u001b[K'

// Each look at the clock takes a second, when a person begins to wonder.
it.before(() => {
  let looks = 0
  const { now } = performance
  performance.now = () => now.call(performance) + 1000 * looks++
})
it.after(() => {
  Reflect.deleteProperty(performance, 'now')
})

/** A progress line came, was cleared, and nothing of it is left on what is printed behind it. */
function judge({ screen, code }: TerminalEnded, said: RegExp, expected = 0): string {
  assert.is(code, expected, screen)
  const [, shown = '', ...more] = screen.split(CLEARED)
  assert.match(shown, said)
  assertNone([shown, ...more.slice(0, -1)], (part) => part.includes('\n'), 'a line of it was left standing')
  return stripVTControlCharacters(more.at(-1) ?? '')
}

for (const [name, words, said, printed] of [
  ['ledger verify', [], /^check \d+ of \d+: [a-z-]+$/, /^All \d+ invariants hold/],
  ['webhooks reprocess', ['--dry-run'], /^deciding the stored events again$/, /^4 events, 3 decided again\./],
  [
    'billing close',
    ['--as-of', '2099-01-01', '--yes'],
    /^cycle 1 of 1$/,
    /^Cycle +Becomes +Merchant(.|\n)*1 closed, 0 extended/,
  ],
] as const)
  it(`"${name}" says it at a terminal, and nowhere else`, async () => {
    const command = [...name.split(' '), ...words]
    assert.match(judge(await books.type(command), said), printed)
    const piped = await books.affiliate(command)
    assert.equal([piped.code, piped.stderr], [0, ''])
    const json = await books.type([...command, '--json'])
    assert.is(json.code, 0)
    JSON.parse(json.screen)
  })

it('"webhooks replay" says it, and what went wrong stands on a line of its own', async () => {
  const busy = createServer((request, response) => {
    if (request.url === '/readyz') return void response.end('{"environment":"test"}')
    response.writeHead(503).end('{"code":"unavailable","detail":"too busy"}')
  })
  await once(busy.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(busy.address() as AddressInfo).port}`
  const domain = `s${books.shop.merchantId}.myshopify.com`
  const args = ['draft-order', '--store', domain, '--url', url, '--times', '2']
  const ended = await books.type(['webhooks', 'replay', ...args])
  busy.closeAllConnections()
  busy.close()
  const rest = judge(ended, /draft-order/, 1)
  assert.ok(ended.screen.includes(`${CLEARED}sending draft-order (1 of 2)${CLEARED}`))
  assert.match(rest, /^ *Fixture +Answers(.|\n)*\naffiliate: The service refused draft-order\.\n$/)
})

it.run()
