// long
import { stripVTControlCharacters } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { changedTables, tableDigests } from '../../server/test/authorization/digest.ts'
import { MANUAL_SETTINGS } from '../../server/test/testkit/manual-market.ts'
import { assertNone, pluckAll } from '../../server/test/testkit/pluck.ts'
import { rowOf, rowsOf } from '../../server/test/testkit/rows.ts'
import { EXAMPLE_ID } from '../command.ts'
import { buildProgram } from '../program.ts'
import { openBooks } from './books.ts'
import { leavesOf } from './command-tree.ts'
import { inputOf, OPERATOR_WORK, runOperatorWork, type World } from './operator-work.ts'
import { openProcessorStub } from './processor-stub.ts'
import type { Typed } from './run-here.ts'
import { holdsWriteLock } from './stuck-table.ts'

/** What some write is a record of its own, and moves neither money nor people. */
const RECORDS: Record<string, readonly string[]> = {
  'ledger seal': ['ledger_seals', 'ledger_seal_heads', 'watermarks'],
}

interface TerminalWay {
  args?: string[]
  /** Exit code; 0 unless given. */
  code?: number
  typed?: Typed[]
  environment?: Record<string, string>
}

const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const AS = ['--as', 'you@example.com']
const fails =
  (...args: string[]) =>
  (): TerminalWay => ({ args, code: 1 })

/** What `OPERATOR_WORK` calls nowhere, but for those whose own tests look at their lines. */
const OTHERS: Record<string, (world: World) => TerminalWay> = {
  init: () => ({
    args: [
      ...['--file', '/dev/null/affiliate.env', '--domain', 'partners.chenab.pk', '--smtp-url', 'off'],
      ...['--processor', 'http'],
    ],
    typed: [{ after: /PROCESSOR_URL: .*: /, keys: CTRL_D }],
    code: 1,
  }),
  seed: fails(),
  'processor register-webhook': fails(),
  'db migrate': () => ({}),
  'db mark-development': () => ({}),
  'db restore': ({ books }) => ({ args: [`${books.market.bed.testDatabase.folder}/backup.db`] }),
  'db grants': fails(),
  doctor: () => ({}),
  'users enroll-second-factor': () => ({
    args: ['second@example.pk'],
    typed: [{ after: /Code that the app shows: /, keys: CTRL_D }],
    code: 1,
  }),
  'flagged walk': () => ({ typed: [{ after: /\[q\]uit > /, keys: 'q\n' }] }),
  'webhooks replay': ({ books }) => ({
    args: ['draft-order', '--store', books.shop.storeId, '--url', 'http://127.0.0.1:9'],
    code: 1,
  }),
  'webhooks listen': () => ({ typed: [{ after: /Ctrl-C ends it/, keys: CTRL_C }] }),
  'stores check': ({ books }) => ({ args: [`s${books.shop.merchantId}.myshopify.com`], code: 1 }),
  'billing reconcile': () => ({}),
  'manual due': () => ({ environment: MANUAL_SETTINGS }),
  'manual received': fails(EXAMPLE_ID, '--amount', '5', '--reference', 'FT1', ...AS),
  'manual payout-file': fails(...AS),
  'manual paid': fails(EXAMPLE_ID, '--reference', 'FT1', ...AS),
  'manual failed': fails(EXAMPLE_ID, '--reason', 'closed', ...AS),
  'manual reconcile': fails('statement.csv', ...AS),
}

const COLUMNS = 80
/** A path or a digest, which is not broken. */
const LONG_WORD = /\S{41}/
/** Prints a script, which is for no terminal's width. */
const WIDE = 'completion'

const it = suite<World>('every command')
it.before(async (world) => {
  world.books = await openBooks('sqlite')
  world.stub = await openProcessorStub()
  world.stub.onLookup = () => look(world.books)
})
it.after(async ({ books, stub }) => {
  await stub.close()
  await books.market.close()
})

it('has a row here', () => {
  const names = leavesOf(buildProgram()).map(({ name }) => name)
  assert.equal(Object.keys(OPERATOR_WORK).sort(), names.sort())
  const others = Object.keys(OPERATOR_WORK).filter((name) => typeof OPERATOR_WORK[name] === 'string')
  assert.equal([...Object.keys(OTHERS), 'demo', 'serve'].sort(), others.sort())
})

/** What a terminal shows of a line: no colours, and what came after the last return to its start. */
const shown = (line: string) => stripVTControlCharacters(line.split('\r').at(-1) ?? '')

/** Runs a command at a terminal, and looks at the width of what it prints. */
async function runAtTerminal({ books, stub }: World, name: string, way: TerminalWay): Promise<void> {
  const { args = [], code = 0, environment = stub.settings } = way
  const input = inputOf(args)
  const password = input === undefined ? [] : [/Password: /, /Password again: /]
  const typed = way.typed ?? password.map((after) => ({ after, keys: input ?? '' }))
  const ended = await books.type([...name.split(' '), ...args], { columns: COLUMNS, typed, environment })
  assert.is(ended.code, code, ended.screen)
  // An error is one line, and so is a question; the terminal itself breaks them.
  const lines = ended.screen.split('\n').map(shown)
  const text = lines.filter((line) => !/^affiliate: |\[y\/N\] /.test(line) && !LONG_WORD.test(line))
  if (name !== WIDE) assertNone(text, (line) => [...line].length > COLUMNS)
}

/** Whether a command held the write lock while it asked a person or the processor. */
let locked = false
const look = ({ market }: World['books']) => {
  locked ||= holdsWriteLock(market.bed.testDatabase.folder)
}

/** Without --yes it asks at a terminal, holds no lock meanwhile, and fails elsewhere. */
async function decline({ books, stub }: World, name: string, args: string[]): Promise<void> {
  const words = [...name.split(' '), ...args.filter((arg) => arg !== '--yes')]
  const unasked = await books.affiliate(words, stub.settings, inputOf(args))
  assert.equal([unasked.code, unasked.stdout], [1, ''])
  assert.is(unasked.stderr, 'affiliate: Not a terminal; confirm with --yes.\n')
  // A password is asked for as well.
  if (inputOf(args) !== undefined) return
  const typed = [{ after: /\[y\/N\] /, keys: 'n\n', onSeen: () => look(books) }]
  const asked = await books.type(words, { environment: stub.settings, typed })
  assert.is(asked.code, 1, asked.screen)
  assert.match(asked.screen, /Nothing was done\./)
}

for (const [name, recipe] of Object.entries(OPERATOR_WORK)) {
  if (typeof recipe === 'string') {
    const other = OTHERS[name]
    if (other)
      it(`${name} fits the terminal`, (world) =>
        runAtTerminal(world, name, { environment: {}, ...other(world) }))
    continue
  }
  const { action } = recipe
  it(`${name} ${action ? 'leaves an audit row' : 'changes nothing that would need one'}`, async (world) => {
    const { platform } = world.books.market
    const { reader } = platform.database
    const args = await recipe(world.books)
    const before = { rows: await rowsOf(platform, 'audit_entries'), tables: await tableDigests(reader) }
    if (args.includes('--yes')) await decline(world, name, args)
    assert.equal(changedTables(before.tables, await tableDigests(reader)), [])
    await runAtTerminal(world, name, { args })
    assert.not(locked, 'it holds the write lock while it asks')
    // It writes a new file only.
    if (!action && name !== 'db backup') {
      JSON.parse((await runOperatorWork(world, name, [...args, '--json'])).stdout)
    }
    const changed = changedTables(before.tables, await tableDigests(reader))
    if (!action) {
      const unexplained = changed.filter((table) => !RECORDS[name]?.includes(table))
      return assert.equal(unexplained, [], 'it leaves an audit row: say in OPERATOR_WORK which')
    }
    assert.ok(changed.some((table) => table !== 'audit_entries'))
    // A store that is released takes its merchant's offers with it, and a link that ends its coupon code, each on the record.
    const taken = ['offer.pause', 'link.coupon'].filter((one) => one !== action)
    const rows = (await rowsOf(platform, 'audit_entries')).slice(before.rows.length)
    const added = rows.filter((row) => !taken.includes(row.action))
    const reason = args.findIndex((arg) => arg === '--reason' || arg === '--note')
    const given = reason < 0 ? null : args[reason + 1]
    assert.equal(pluckAll(added, 'actor', 'action', 'reason'), [['operator', action, given]])
    // A password is nothing to write down.
    if (name !== 'users set-password') assert.ok(added[0]?.after)
  })
}

it('says how things were before and after', async ({ books: { market, creatorId: creator_id } }) => {
  for (const [action, before, after] of [
    // Commissions of 5,624.88 and fees of 562.49, less the credit of 10.00.
    ['billing.close', { state: 'open' }, { state: 'closed', credit_total: 1000, amount_due: 617_737 }],
    ['payout.run', { creator_id, released: 562_488 }, { creator_id, released: 0, amount: 562_488 }],
    ['event.retry', { state: 'set_aside' }, { state: 'pending' }],
    ['offer.vet', {}, { vetting: 'approved' }],
    ['store.release', { in_use: true }, { in_use: false, released: true }],
    ['export.file', {}, { user: null }],
  ] as const) {
    const row = await rowOf(market.platform, 'audit_entries', { action })
    for (const [text, facts] of [
      [row.before, before],
      [row.after, after],
    ] as const) {
      const recorded = JSON.parse(text ?? 'null')
      for (const [name, fact] of Object.entries(facts))
        assert.equal(recorded[name], fact, `${action}: ${name}`)
    }
  }
})

it('is coloured at a terminal only, and not with NO_COLOR', async ({ books }) => {
  const piped = await books.affiliate(['users', 'list'])
  assert.not(piped.stdout.includes('\u001b'))
  const screenOf = async (environment: Record<string, string>) =>
    (await books.type(['users', 'list'], { environment })).screen
  assert.ok((await screenOf({})).includes('\u001b[1m'))
  assert.not((await screenOf({ NO_COLOR: '1' })).includes('\u001b'))
  assert.not((await screenOf({ TERM: 'dumb' })).includes('\u001b'))
})

it.run()
