// proof only
import { writeFileSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { queuedMail } from '../../server/test/testkit/people.ts'
import { buildProgram } from '../program.ts'
import { type Books, openBooks } from './books.ts'
import { helpOf, leavesOf } from './command-tree.ts'
import { freshEndpoint } from './operator-work.ts'
import type { Ended } from './run-affiliate.ts'
import { NO_PTY, runInPty, type Typed } from './run-in-pty.ts'

interface Way {
  args?: string[]
  /** Exit code; 0 unless given. */
  code?: number
  /** Of the run with `--json`, where it is another. */
  jsonCode?: number
  /** What is typed at the terminal. */
  typed?: Typed[]
  input?: string
  /** Prints what is for no terminal's width: a script, a body. */
  wide?: boolean
  /** With `--json` one document a line. */
  lines?: boolean
  /** Runs until a signal ends it, so another test starts it as a process, with `--json`. */
  process?: true
}

const CTRL_C = '\u0003'
const PASSWORD = 'a long passphrase'
const NOBODY = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'
const typedPassword: Typed[] = [
  { after: /Password: /, keys: `${PASSWORD}\n` },
  { after: /Password again: /, keys: `${PASSWORD}\n` },
]

/** How each command that an operator has been promised is run; those that change something in this order. */
function waysOver(books: Books, known: Known): Record<string, Way> {
  const { folder } = books.market.bed.testDatabase
  return {
    'db status': {},
    'users list': {},
    'sessions list': { args: [books.creatorId] },
    'stores list': {},
    'stores compare': { args: [`s${books.shop.merchantId}.myshopify.com`, `${folder}/orders_export.csv`] },
    'stores check': { args: [`s${books.shop.merchantId}.myshopify.com`], code: 1 },
    'offers list': {},
    'applications list': {},
    'links list': {},
    'flagged list': {},
    'sales list': {},
    'sales explain': { args: ['6100000001009'] },
    'webhooks fixtures': {},
    'webhooks events': {},
    'webhooks show': { args: [known.eventId, '--body'], wide: true },
    'webhooks reprocess': { args: ['--dry-run'] },
    'endpoints list': {},
    'endpoints show': { args: [known.endpointId] },
    'billing cycles': {},
    'payouts list': {},
    'ledger balances': {},
    'ledger verify': {},
    'ledger statement': { args: [books.shop.merchantId] },
    'jobs list': {},
    'mail list': {},
    'mail preferences': { args: [books.creatorId] },
    'mail show': { args: [known.mailId] },
    status: {},
    doctor: {},
    completion: { args: ['bash'], wide: true },
    'db migrate': {},
    'db mark-development': {},
    'db backup': { args: [`${folder}/copy.db`], jsonCode: 1 },
    'db grants': { code: 1 },
    'db restore': { args: [`${folder}/copy.db`], jsonCode: 1 },
    'users create-admin': {
      args: ['op@example.com', '--password-stdin'],
      typed: typedPassword,
      input: PASSWORD,
      jsonCode: 1,
    },
    'users set-password': {
      args: ['op@example.com', '--password-stdin'],
      typed: [{ after: /All sessions end\. \[y\/N\] /, keys: 'y\n' }, ...typedPassword],
      jsonCode: 1,
    },
    'users suspend': {
      args: [books.creatorId],
      typed: [{ after: /Suspend creator .*\? \[y\/N\] /, keys: 'y\n' }],
    },
    'users reinstate': {
      args: [books.creatorId],
      typed: [{ after: /Reinstate creator .*\? \[y\/N\] /, keys: 'y\n' }],
    },
    'users enroll-second-factor': {
      args: ['op@example.com'],
      typed: [{ after: /Code that the app shows: /, keys: '\u0004' }],
      code: 1,
      jsonCode: 2,
    },
    'users reset-second-factor': { args: [books.creatorId, '--reason', 'lost'] },
    'sessions end': {
      args: [books.creatorId],
      typed: [{ after: /End all sessions of creator .*\? \[y\/N\] /, keys: 'y\n' }],
      jsonCode: 1,
    },
    'offers vet': {
      args: [known.offerId, '--approve'],
      typed: [{ after: /\[y\/N\] /, keys: 'yes\n' }],
      jsonCode: 1,
    },
    'links set-coupon': { args: [books.slug, 'SANA10'] },
    'flagged resolve': { args: [known.flagId, '--note', 'looked at it'] },
    'flagged walk': { jsonCode: 2 },
    'stores release': {
      args: [`s${books.otherShop.merchantId}.myshopify.com`],
      typed: [{ after: /\[y\/N\] /, keys: 'n\n' }],
      code: 1,
    },
    'stores allow': {
      args: [`s${books.otherShop.merchantId}.myshopify.com`, '--merchant', books.otherShop.merchantId],
      code: 1,
    },
    'webhooks retry': {
      args: [known.eventId],
      typed: [{ after: /again\? \[y\/N\] /, keys: 'y\n' }],
      jsonCode: 1,
    },
    'endpoints replay': {
      args: [known.endpointId, '--since', '2020-01-01'],
      typed: [{ after: /\[y\/N\] /, keys: 'y\n' }],
      jsonCode: 1,
    },
    'endpoints disable': {
      args: [known.endpointId],
      typed: [{ after: /\[y\/N\] /, keys: 'y\n' }],
      jsonCode: 1,
    },
    'webhooks replay': {
      args: ['draft-order', '--store', known.domain, '--url', 'http://127.0.0.1:9'],
      code: 1,
    },
    'webhooks listen': {
      typed: [{ after: /Ctrl-C ends it/, keys: CTRL_C }],
      process: true,
    },
    'billing credit': {
      args: [books.shop.merchantId, '100', '--reference', 'CR-1', '--reason', 'returned'],
      typed: [{ after: /cannot be taken back\. \[y\/N\] /, keys: 'y\n' }],
      jsonCode: 1,
    },
    'billing reconcile': {},
    'billing close': { args: ['--as-of', '2020-01-01'] },
    'billing reissue': {
      args: [NOBODY],
      code: 1,
    },
    'payouts run': {},
    'payouts retry': { args: [NOBODY], code: 1 },
    'processor register-webhook': { code: 1 },
    'ledger seal': {},
    'keys rotate': {},
    'mail retry': { args: [known.mailId] },
    serve: {
      typed: [{ after: /all other commands/, keys: CTRL_C }],
      process: true,
    },
    seed: { code: 1 },
    demo: {
      typed: [{ after: /1\. {2}/, keys: CTRL_C }],
      code: 1,
      process: true,
    },
  }
}

interface Known {
  eventId: string
  flagId: string
  offerId: string
  endpointId: string
  domain: string
  mailId: string
}

const SETTINGS = { HOST: '127.0.0.1', PORT: '0', SCHEDULE_BILLING: 'off', SCHEDULE_PAYOUTS: 'off' }
const COLUMNS = 80
/** A path or a digest, which is not broken. */
const LONG_WORD = /\S{41}/

const it = suite('every command')
let books: Books
let ways: Record<string, Way>

it.before(async () => {
  books = await openBooks('sqlite')
  const { reader } = books.market.platform.database
  const only = (table: 'offers' | 'flags') =>
    reader.selectFrom(table).select('id').limit(1).executeTakeFirstOrThrow()
  const event = await reader
    .selectFrom('inbound_events')
    .select('id')
    .where('state', '=', 'set_aside')
    .executeTakeFirstOrThrow()
  const known: Known = {
    eventId: event.id,
    flagId: (await only('flags')).id,
    offerId: (await only('offers')).id,
    endpointId: await freshEndpoint({ books }),
    domain: `s${books.shop.merchantId}.myshopify.com`,
    mailId: await queuedMail(books.market.platform, books.creatorId),
  }
  const head = 'Name,Financial Status,Currency,Subtotal,Created at,Id\n'
  writeFileSync(`${books.market.bed.testDatabase.folder}/orders_export.csv`, head)
  ways = waysOver(books, known)
})
it.after(() => books.market.close())

it('is there, says what it does, and shows an example and --json', () => {
  const leaves = leavesOf(buildProgram())
  assert.equal(leaves.map(({ name }) => name).sort(), Object.keys(ways).sort())
  for (const { name, command } of leaves) {
    const help = helpOf(command)
    assert.ok(command.description() !== '', name)
    assert.match(help, new RegExp(`\\$ affiliate ${name}( |$)`, 'm'), name)
    assert.match(help, /--json/, name)
  }
})

function judgeJson(name: string, way: Way, { code, stdout, stderr }: Ended): void {
  const expected = way.jsonCode ?? way.code ?? 0
  assert.is(code, expected, `${name}: ${stderr}`)
  if (expected === 0) assert.is(stderr, '', name)
  else assert.is(typeof JSON.parse(stderr).detail, 'string', name)
  if (stdout !== '') for (const line of way.lines ? stdout.trim().split('\n') : [stdout]) JSON.parse(line)
}

/** What a terminal shows of a line: no colours, and what came after the last return to its start. */
function shown(line: string): string {
  return stripVTControlCharacters(line.split('\r').at(-1) ?? '')
}

async function runBoth(name: string): Promise<void> {
  const { args = [], typed = [], code = 0, input = '', wide, process } = ways[name] ?? {}
  const words = [...name.split(' '), ...args]
  if (process && NO_PTY !== null) return console.log(`\nskipped: ${name}, since ${NO_PTY}`)
  const environment = { ...books.settings, ...SETTINGS }
  const ended = process
    ? await runInPty(words, { columns: COLUMNS, typed, environment })
    : await books.type(words, { columns: COLUMNS, typed, environment })
  assert.is(ended.code, code, `${name} at a terminal: ${ended.screen}`)
  // An error is one line, and so is a question; the terminal itself breaks them.
  const lines = ended.screen.split('\n').filter((line) => !/^affiliate: |\[y\/N\] /.test(shown(line)))
  const tooWide = lines.map(shown).filter((line) => [...line].length > COLUMNS && !LONG_WORD.test(line))
  if (!wide) assert.equal(tooWide, [], name)
  if (process) return
  const json = await books.affiliate([...words, '--json'], SETTINGS, input)
  judgeJson(name, ways[name] ?? {}, json)
}

it('does its work with and without a terminal', async () => {
  for (const name of Object.keys(ways)) await runBoth(name)
})

it('is coloured at a terminal only, and not with NO_COLOR', async () => {
  const piped = await books.affiliate(['users', 'list'])
  assert.not(piped.stdout.includes('\u001b'))
  const [plain, without, dumb] = await Promise.all([
    books.type(['users', 'list']),
    books.type(['users', 'list'], { environment: { NO_COLOR: '1' } }),
    books.type(['users', 'list'], { environment: { TERM: 'dumb' } }),
  ])
  assert.ok(plain.screen.includes('\u001b[1m'))
  assert.not(without.screen.includes('\u001b'))
  assert.not(dumb.screen.includes('\u001b'))
})

it.run()
