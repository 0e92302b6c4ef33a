// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Output, timeText } from './output.ts'
import { styled } from './printable-text.ts'
import { layoutTable, wrapLine } from './table.ts'

const COLUMNS = [{ title: 'Name', flexible: true }, { title: 'Amount', right: true }, { title: 'Id' }]
const ROWS = [
  ['Gulshan-e-Iqbal Textile Traders', 'Rs 12,500.00', 'abc'],
  ['Zoya', 'Rs 5.00', 'defg'],
]

test('a table is aligned, money to the right, without trailing blanks', () => {
  assert.equal(layoutTable(COLUMNS, ROWS, { width: 80, colour: false }), [
    'Name                                   Amount  Id',
    'Gulshan-e-Iqbal Textile Traders  Rs 12,500.00  abc',
    'Zoya                                  Rs 5.00  defg',
  ])
})

test('a narrow terminal cuts the flexible column, never amounts and ids', () => {
  const lines = layoutTable(COLUMNS, ROWS, { width: 30, colour: false })
  assert.equal(lines, [
    'Name              Amount  Id',
    'Gulshan-e…  Rs 12,500.00  abc',
    'Zoya             Rs 5.00  defg',
  ])
  for (const width of [30, 31, 40, 50]) {
    const longest = Math.max(
      ...layoutTable(COLUMNS, ROWS, { width, colour: false }).map((line) => line.length),
    )
    assert.ok(longest <= width, `${longest} > ${width}`)
  }
})

test('a column that wraps is broken between words, and its neighbors stay in the first line', () => {
  const columns = [{ title: 'Id' }, { title: 'What', flexible: 'wrap' as const }, { title: 'Code' }]
  const rows = [['1', 'The sum is zero.', 'ab']]
  assert.equal(layoutTable(columns, rows, { width: 19, colour: false }), [
    'Id  What       Code',
    '1   The sum    ab',
    '    is zero.',
  ])
  assert.equal(layoutTable(columns, rows, { width: null, colour: false })[1], '1\tThe sum is zero.\tab')
})

test('optional columns make room, the last one first', () => {
  const columns = [
    ...COLUMNS.slice(0, 2),
    { title: 'Since', optional: true },
    { title: 'Id', optional: true },
  ]
  const rows = ROWS.map(([name = '', amount = '', id = '']) => [name, amount, '2026-11-24', id])
  const titles = (width: number) => layoutTable(columns, rows, { width, colour: false })[0]
  assert.is(titles(48), 'Name                    Amount  Since       Id')
  assert.is(titles(46), 'Name                        Amount  Since')
  assert.is(titles(40), 'Name                              Amount')
  assert.is(layoutTable(columns, rows, { width: null, colour: false })[0], 'Name\tAmount\tSince\tId')
})

test('prose is broken between words, under its own text', () => {
  assert.equal(wrapLine('  10:00  A visitor followed the link twice', 24), [
    '  10:00  A visitor',
    '         followed the',
    '         link twice',
  ])
  assert.equal(wrapLine('  - a list entry that is long', 16), ['  - a list entry', '  that is long'])
  assert.equal(wrapLine('short', 5), ['short'])
  assert.equal(wrapLine(`see ${'x'.repeat(30)} now`, 20), ['see', 'x'.repeat(30), 'now'])
  const styledWord = styled('bold', 'heavy')
  assert.equal(wrapLine(`${styledWord} words`, 11), [`${styledWord} words`])
  assert.equal(wrapLine(`${styledWord} words`, 10), [styledWord, 'words'])
})

test('a command to copy is never broken', () => {
  let printed = ''
  const stream = { write: (text: string) => (printed += text) } as unknown as NodeJS.WriteStream
  const command = '  affiliate db restore /var/backups/affiliate.db'
  const out = new Output({ json: false, zone: 'UTC', layout: { width: 20, colour: false } })
  out.print(['To restore it into a new database:', { command }], stream)
  assert.is(printed, `To restore it into a\nnew database:\n${command}\n`)
})

test('what cannot be cut to the width stands as one block a row', () => {
  assert.equal(layoutTable(COLUMNS, ROWS, { width: 20, colour: false }), [
    'Gulshan-e-Iqbal Tex…',
    '  Amount  Rs 12,500.00',
    '  Id      abc',
    '',
    'Zoya',
    '  Amount  Rs 5.00',
    '  Id      defg',
  ])
  const long = [['1', 'a sentence that is longer than the terminal is wide', '–']]
  const columns = [{ title: 'Id' }, { title: 'What' }, { title: 'Empty' }]
  assert.equal(layoutTable(columns, long, { width: 30, colour: false }), [
    '1',
    '  What   a sentence that is',
    '         longer than the',
    '         terminal is wide',
  ])
})

test('emoji and East Asian letters take two columns, marks none', () => {
  const rows = [
    ['👩‍🌾 کپڑا', 'x'],
    ['漢字', 'x'],
    ['e\u0301', 'x'],
  ]
  const lines = layoutTable([{ title: 'Name', flexible: true }, { title: 'T' }], rows, {
    width: 40,
    colour: false,
  })
  // One emoji, a blank and four letters; two letters of two columns; one letter with its accent.
  assert.equal(lines.slice(1), ['👩‍🌾 کپڑا  x', '漢字     x', 'e\u0301        x'])
})

test('off a terminal cells are whole and parted by tabs, and amounts are plain', () => {
  const [, line] = layoutTable(COLUMNS, ROWS, { width: null, colour: false })
  assert.is(line, 'Gulshan-e-Iqbal Textile Traders\t12500.00\tabc')
})

test('texts of others cannot steer the terminal or break a row', () => {
  const [, line] = layoutTable([{ title: 'T' }], [['a\u001b[2Jb\tc\nd\u202ee']], {
    width: null,
    colour: false,
  })
  assert.is(line, 'a\ufffd[2Jb\ufffdc\ufffdd\ufffde')
})

test('times stand on the clock of the billing time zone, with its offset', () => {
  const moment = Date.UTC(2026, 1, 28, 19, 0, 5)
  assert.is(timeText(moment, 'Asia/Karachi'), '2026-03-01 00:00:05 +05:00')
  assert.is(timeText(moment, 'UTC'), '2026-02-28 19:00:05 +00:00')
  assert.is(timeText(moment, 'America/New_York'), '2026-02-28 14:00:05 -05:00')
})

test.run()
