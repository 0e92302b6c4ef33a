// long
import { stripVTControlCharacters } from 'node:util'
import * as assert from 'uvu/assert'
import { suiteOverBooks } from '../test/books.ts'
import { startAffiliate } from '../test/run-affiliate.ts'

const { it, books } = suiteOverBooks('watching where everything stands')
const WATCH = ['status', '--watch', '--every', '1']
const CTRL_C = '\u0003'
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l'
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'

it('is redrawn in one place, and Ctrl-C gives the terminal back as it was', async () => {
  const { code, screen } = await books.type(WATCH, {
    columns: 60,
    typed: [
      { after: /Flags +1 high · 0 medium(.|\n)*Ctrl-C ends it/, keys: '', onSeen: () => books.flagCreator() },
      { after: /Flags +(?!1 high · 0 medium)\d(.|\n)*Ctrl-C ends it/, keys: CTRL_C },
    ],
  })
  assert.is(code, 0)
  assert.ok(screen.startsWith(ENTER), JSON.stringify(screen.slice(0, 40)))
  assert.ok(screen.endsWith(LEAVE), JSON.stringify(screen.slice(-60)))
  const views = screen.slice(ENTER.length, -LEAVE.length).split(HOME).slice(1)
  assert.ok(views.length >= 2)
  for (const view of views) assert.not.ok(view.endsWith('\n'), 'the view moves up by a line')
})

it('shows as much as there is room for', async () => {
  const { screen } = await books.type(WATCH, { rows: 5, typed: [{ after: /Inbox/, keys: CTRL_C }] })
  assert.is(screen.split(HOME)[1]?.split('\n').length, 5)
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
  for (const line of stdout.trim().split('\n')) {
    const { flags, at } = JSON.parse(line)
    assert.equal([typeof flags.high, typeof at], ['number', 'string'])
  }
})

it.run()
