// proof only
import { stripVTControlCharacters } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MANUAL_SETTINGS } from '../../server/test/testkit/manual-market.ts'
import { EXAMPLE_ID } from '../command.ts'
import { openBooks } from './books.ts'
import { OPERATOR_WORK, type Way, type World } from './operator-work.ts'
import { openProcessorStub } from './processor-stub.ts'
import { NO_PTY, runInPty, type Typed } from './run-in-pty.ts'

interface TerminalWay extends Partial<Way> {
  /** Exit code; 0 unless given. */
  code?: number
  typed?: Typed[]
  environment?: Record<string, string>
  /** Runs until a signal ends it, so it is a process. */
  process?: true
}

const CTRL_C = '\u0003'
const CTRL_D = '\u0004'

/** What `OPERATOR_WORK` calls nowhere, at a terminal. */
const OTHERS: Record<string, (world: World) => TerminalWay> = {
  serve: () => ({ typed: [{ after: /all other commands/, keys: CTRL_C }], process: true }),
  demo: () => ({ typed: [{ after: /1\. {2}/, keys: CTRL_C }], code: 1, process: true }),
  init: () => ({
    args: [
      '--file',
      '/dev/null/affiliate.env',
      '--domain',
      'partners.chenab.pk',
      '--smtp-url',
      'off',
      '--processor',
      'http',
    ],
    typed: [{ after: /PROCESSOR_URL: .*: /, keys: CTRL_D }],
    code: 1,
  }),
  seed: () => ({ code: 1 }),
  'processor register-webhook': () => ({ code: 1 }),
  'db migrate': () => ({}),
  'db mark-development': () => ({}),
  'db restore': ({ books }) => ({ args: [`${books.market.bed.testDatabase.folder}/backup.db`] }),
  'db grants': () => ({ code: 1 }),
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
  'webhooks listen': () => ({ typed: [{ after: /Ctrl-C ends it/, keys: CTRL_C }], process: true }),
  'stores check': ({ books }) => ({ args: [`s${books.shop.merchantId}.myshopify.com`], code: 1 }),
  'billing reconcile': () => ({}),
  'manual due': () => ({ environment: MANUAL_SETTINGS }),
  'manual received': () => ({
    args: [EXAMPLE_ID, '--amount', '5', '--reference', 'FT1', '--as', 'you@example.com'],
    code: 1,
  }),
  'manual payout-file': () => ({ args: ['--as', 'you@example.com'], code: 1 }),
  'manual paid': () => ({ args: [EXAMPLE_ID, '--reference', 'FT1', '--as', 'you@example.com'], code: 1 }),
  'manual failed': () => ({ args: [EXAMPLE_ID, '--reason', 'closed', '--as', 'you@example.com'], code: 1 }),
  'manual reconcile': () => ({ args: ['statement.csv', '--as', 'you@example.com'], code: 1 }),
}

const SETTINGS = { HOST: '127.0.0.1', PORT: '0', SCHEDULE_BILLING: 'off', SCHEDULE_PAYOUTS: 'off' }
const COLUMNS = 80
/** A path or a digest, which is not broken. */
const LONG_WORD = /\S{41}/
/** Prints a script, which is for no terminal's width. */
const WIDE = 'completion'

const it = suite<World>('every command at a terminal')
it.before(async (world) => {
  world.books = await openBooks('sqlite')
  world.stub = await openProcessorStub()
})
it.after(async ({ books, stub }) => {
  await stub.close()
  await books.market.close()
})

/** What a terminal shows of a line: no colours, and what came after the last return to its start. */
function shown(line: string): string {
  return stripVTControlCharacters(line.split('\r').at(-1) ?? '')
}

it('has a row for each that no audited work calls', () => {
  const others = Object.keys(OPERATOR_WORK).filter((name) => typeof OPERATOR_WORK[name] === 'string')
  assert.equal(Object.keys(OTHERS).sort(), others.sort())
})

it('does its work within 80 columns', async (world) => {
  for (const [name, recipe] of Object.entries(OPERATOR_WORK)) {
    const made: TerminalWay = typeof recipe === 'string' ? (OTHERS[name]?.(world) ?? {}) : await recipe(world)
    const { args = [], code = 0, input, process } = made
    const password = input === undefined ? [] : [/Password: /, /Password again: /]
    const typed = made.typed ?? password.map((after) => ({ after, keys: input ?? '' }))
    const words = [...name.split(' '), ...args]
    if (process && NO_PTY !== null) {
      console.log(`\nskipped: ${name}, since ${NO_PTY}`)
      continue
    }
    const { books, stub } = world
    const own = made.environment ?? (name in OTHERS ? {} : stub.settings)
    const options = { columns: COLUMNS, typed, environment: { ...own, ...SETTINGS } }
    const ended = process
      ? await runInPty(words, { ...options, environment: { ...books.settings, ...SETTINGS } })
      : await books.type(words, options)
    assert.is(ended.code, code, `${name}: ${ended.screen}`)
    // An error is one line, and so is a question; the terminal itself breaks them.
    const lines = ended.screen.split('\n').map(shown)
    const text = lines.filter((line) => !/^affiliate: |\[y\/N\] /.test(line) && !LONG_WORD.test(line))
    const tooWide = text.filter((line) => [...line].length > COLUMNS)
    if (name !== WIDE) assert.equal(tooWide, [], name)
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
