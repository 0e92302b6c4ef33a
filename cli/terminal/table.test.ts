// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Output, timeText } from './output.ts'
import { styled } from './printable-text.ts'
import { type Layout, layoutTable, wrapLine } from './table.ts'

const COLUMNS = [{ title: 'Name', flexible: true }, { title: 'Amount', right: true }, { title: 'Id' }]
const ROWS = [
  ['Gulshan-e-Iqbal Textile Traders', 'Rs 12,500.00', 'abc'],
  ['Zoya', 'Rs 5.00', 'defg'],
]

/** The lines of a table at a terminal of this width, `null` in a pipe. */
const linesOf = (
  columns: Parameters<typeof layoutTable>[0],
  rows: string[][],
  width: number | null,
  more: Partial<Layout> = {},
) => layoutTable(columns, rows, { width, colour: false, ...more })

test('a table is aligned, money to the right, without trailing blanks', () => {
  assert.equal(linesOf(COLUMNS, ROWS, 80), [
    'Name                                   Amount  Id',
    'Gulshan-e-Iqbal Textile Traders  Rs 12,500.00  abc',
    'Zoya                                  Rs 5.00  defg',
  ])
})

test('a narrow terminal cuts the flexible column, never amounts and ids', () => {
  assert.equal(linesOf(COLUMNS, ROWS, 36), [
    'Name                    Amount  Id',
    'Gulshan-e-Iqbal…  Rs 12,500.00  abc',
    'Zoya                   Rs 5.00  defg',
  ])
})

test('a column that wraps is broken between words, and its neighbors stay in the first line', () => {
  const columns = [{ title: 'Id' }, { title: 'What', flexible: 'wrap' as const, least: 9 }, { title: 'Code' }]
  const rows = [['1', 'The sum is zero.', 'ab']]
  const broken = ['Id  What       Code', '1   The sum    ab', '    is zero.']
  assert.equal(linesOf(columns, rows, 19), broken)
  assert.equal(linesOf(columns, rows, null)[1], '1\tThe sum is zero.\tab')
})

test('columns stand in the order of their importance: the last ones are left out where they do not fit', () => {
  const columns = [...COLUMNS.slice(0, 2), { title: 'Since' }, { title: 'Id' }]
  const rows = ROWS.map(([name = '', amount = '', id = '']) => [name, amount, '2026-11-24', id])
  for (const [width, shown, least] of [
    [48, 'Name Amount Since Id'],
    [47, 'Name Amount Since'],
    [41, 'Name Amount'],
    [29, 'Name'],
    // What must be readable keeps the width that it names.
    [48, 'Name Amount Since', 20],
    [48, 'Name Amount', 32],
    // It keeps it against later columns only: alone it is cut as others are.
    [40, 'Name', 32],
  ] as const) {
    const [first, ...others] = columns
    const [titles] = linesOf(first ? [{ ...first, least }, ...others] : [], rows, width)
    assert.is(titles?.replace(/ +/g, ' '), shown, `${width} ${least}`)
  }
  assert.is(linesOf(columns, rows, null)[0], 'Name\tAmount\tSince\tId')
})

test('a row is one line that fits, at every width', () => {
  const id = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'
  const columns = [{ title: 'Id' }, { title: 'Name', flexible: true }, ...COLUMNS]
  const names = [
    'گلشنِ اقبال ٹیکسٹائل ٹریڈرز',
    '漢字の長い名前です',
    '👩‍🌾👩‍🌾👩‍🌾👩‍🌾👩‍🌾👩‍🌾👩‍🌾👩‍🌾👩‍🌾',
    'Zoe\u0301 & Söhne',
  ]
  const rows = names.flatMap((name) => ROWS.map((row) => [id, name, ...row]))
  for (let width = 1; width <= 120; width += 1) {
    const lines = linesOf(columns, rows, width)
    assert.is(lines.length, rows.length + 1)
    for (const line of lines) assert.ok(columnsOf(line) <= width, `${width}: ${line}`)
  }
})

/** Columns of a terminal: each emoji and East Asian letter takes two, each mark none. */
function columnsOf(line: string): number {
  const letters = [...new Intl.Segmenter('en').segment(line)].map(({ segment }) => segment)
  return letters.reduce((sum, letter) => sum + (/👩|[\u3041-\u9fff]/u.test(letter) ? 2 : 1), 0)
}

test('ids are their last eight characters at a terminal, and whole where no person reads', () => {
  const id = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'
  const row = [id, `payout ${id} is paid`, `po_${id}`]
  const columns = [{ title: 'Id' }, { title: 'About' }, { title: 'Theirs' }]
  const shown = (more: Partial<Layout>) => linesOf(columns, [row], 200, more)[1]?.split(/ {2,}|\t/)
  assert.equal(shown({}), ['3c1b2d4e', 'payout 3c1b2d4e is paid', `po_${id}`])
  assert.equal(shown({ fullIds: true }), row)
  assert.equal(shown({ width: null }), row)
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

test('emoji and East Asian letters take two columns, marks none', () => {
  const rows = [['👩‍🌾 کپڑا', 'x'], ...['漢字', 'e\u0301'].map((name) => [name, 'x'])]
  const lines = linesOf([{ title: 'Name', flexible: true }, { title: 'T' }], rows, 40)
  // One emoji, a blank and four letters; two letters of two columns; one letter with its accent.
  assert.equal(lines.slice(1), ['👩‍🌾 کپڑا  x', '漢字     x', 'e\u0301        x'])
})

test('off a terminal cells are whole and parted by tabs, and amounts and numbers are plain', () => {
  for (const [amount, plain] of [
    ['Rs 12,500.00', '12500.00'],
    ['Rs 12,500.00 Cr', '12500.00 Cr'],
    ['12,500', '12500'],
  ] as const) {
    const [, line] = linesOf(COLUMNS, [['Gulshan-e-Iqbal Textile Traders', amount, 'abc']], null)
    assert.is(line, `Gulshan-e-Iqbal Textile Traders\t${plain}\tabc`)
  }
})

test('texts of others cannot steer the terminal or break a row', () => {
  const [, line] = linesOf([{ title: 'T' }], [['a\u001b[2Jb\tc\nd\u202ee']], null)
  assert.is(line, 'a\ufffd[2Jb\ufffdc\ufffdd\ufffde')
})

test('times stand on the clock of the billing time zone, with its offset', () => {
  const moment = Date.UTC(2026, 1, 28, 19, 0, 5)
  assert.is(timeText(moment, 'Asia/Karachi'), '2026-03-01 00:00:05 +05:00')
  assert.is(timeText(moment, 'UTC'), '2026-02-28 19:00:05 +00:00')
  assert.is(timeText(moment, 'America/New_York'), '2026-02-28 14:00:05 -05:00')
})

test.run()
