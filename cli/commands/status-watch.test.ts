// long
import { stripVTControlCharacters } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { raiseFlag } from '../../server/flags/flags.service.ts'
import { type Books, openBooks } from '../test/books.ts'
import { startAffiliate } from '../test/run-affiliate.ts'
import { NO_PTY, runInPty } from '../test/run-in-pty.ts'

const it = suite('watching where everything stands')
if (NO_PTY !== null) it.skip('there is no pseudo-terminal here to watch in', () => {})
const atTerminal = NO_PTY === null ? it : () => undefined
const WATCH = ['status', '--watch', '--every', '1']
const CTRL_C = '\u0003'
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l'
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'

let books: Books
it.before(async () => {
  books = await openBooks('sqlite')
})
it.after(() => books.market.close())

const raise = () => {
  const { market, creatorId } = books
  return market.platform.database.transaction((tx) =>
    raiseFlag(market.platform, tx, {
      kind: 'self_purchase',
      subjectType: 'user',
      subjectId: creatorId,
      summary: 'To be looked at.',
      evidence: {},
    }),
  )
}

atTerminal('is redrawn in one place, and Ctrl-C gives the terminal back as it was', async () => {
  const { market, settings } = books
  const { code, screen } = await runInPty(WATCH, {
    environment: settings,
    folder: market.bed.testDatabase.folder,
    columns: 60,
    typed: [
      { after: /Flags +1 high · 0 medium(.|\n)*Ctrl-C ends it/, keys: '', onSeen: raise },
      { after: /Flags +(?!1 high · 0 medium)\d(.|\n)*Ctrl-C ends it/, keys: CTRL_C },
    ],
  })
  assert.is(code, 0)
  assert.ok(screen.startsWith(ENTER), JSON.stringify(screen.slice(0, 40)))
  // A terminal shows what was typed, and what is behind the leave would stand in someone's prompt.
  assert.ok(screen.replace('^C', '').endsWith(LEAVE), JSON.stringify(screen.slice(-60)))
  const views = screen.slice(ENTER.length, -LEAVE.length).split(HOME).slice(1)
  assert.ok(views.length >= 2)
  for (const view of views) assert.not.ok(view.endsWith('\n'), 'the view moves up by a line')
})

it('shows as much as there is room for', async () => {
  const { screen } = await books.type(WATCH, { rows: 5, typed: [{ after: /Inbox/, keys: CTRL_C }] })
  const view = screen.split(HOME)[1] ?? ''
  assert.is(view.split('\n').length, 5)
})

it('is only printed where the terminal cannot be written all over', async () => {
  const { screen } = await books.type(WATCH, {
    environment: { TERM: 'dumb' },
    typed: [{ after: /Flags(.|\n)*Flags/, keys: CTRL_C }],
  })
  assert.is(stripVTControlCharacters(screen), screen)
})

it('goes on line by line where there is no terminal, and ends on the signal', async () => {
  const { printed, until, interrupt } = startAffiliate([...WATCH, '--json'], { environment: books.settings })
  await until(() => (printed.stdout.match(/"flags"/g)?.length ?? 0) >= 2)
  const { code, stdout, stderr } = await interrupt()
  assert.equal([code, stderr], [0, ''])
  const lines = stdout.trim().split('\n')
  const documents = lines.map((line) => JSON.parse(line))
  assert.ok(documents.length >= 2)
  for (const { flags, at } of documents) assert.equal([typeof flags.high, typeof at], ['number', 'string'])
})

it.run()
