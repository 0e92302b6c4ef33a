// database: none
import { stripVTControlCharacters } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Output } from './output.ts'
import { jsonText, printable, styled, terminalLine } from './printable-text.ts'

const it = suite('what reaches the terminal')

const HOSTILE: Record<string, string> = {
  'an escape sequence': 'a\u001b[2Jb',
  'an 8-bit escape sequence': 'a\u009b2Jb',
  'a title change': 'a\u001b]0;owned\u0007b',
  'a line break': 'a\nb\r\nc\u2028d\u2029e',
  'a backspace': 'a\bb\u007fc',
  'a bidi override': 'a\u202eb\u2066c\u200fd\u061ce',
  'a zero-width character': 'a\u200bb\u2060c\ufeffd\u00ade',
  'a joiner between Latin letters': 'pay\u200dpal\u200cx',
  'a tag': 'a\u{e0041}b',
  'a lone surrogate': 'a\ud800b',
  'an invisible filler': 'a\u3164b\uffa0c',
}
/** Code points that must not reach a terminal, as ranges. */
const UNSAFE = [
  [0, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x61c, 0x61c],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xe0000, 0xe0fff],
] as const

function unsafeIn(text: string): string[] {
  const codes = [...text].map((character) => character.codePointAt(0) ?? 0)
  return codes
    .filter((code) => UNSAFE.some(([first, last]) => code >= first && code <= last))
    .map((code) => code.toString(16))
}

for (const [what, text] of Object.entries(HOSTILE)) {
  it(`does not contain ${what}`, () => {
    assert.equal(unsafeIn(printable(text)), [])
    assert.match(printable(text), /\ufffd/)
    assert.is(terminalLine(text), printable(text))
    const json = jsonText({ text }, 2)
    assert.equal(unsafeIn(json.replaceAll('\n', '')), [])
    assert.equal(JSON.parse(json), { text })
  })
}

it('leaves languages and emoji as they are', () => {
  const texts = ['کیا ہے', 'می\u200cخواهم', 'Ünïcode', '👩\u200d💻 ❤\ufe0f', '日本語', 'Rs 1,250.00', 'a–b…']
  for (const text of texts) {
    assert.is(printable(text), text)
    assert.is(JSON.parse(jsonText(text)), text)
  }
})

it('styles only what this process has styled', () => {
  assert.is(terminalLine(`${styled('red', 'bad\u001b[2J')} x`), '\u001b[31mbad\ufffd[2J\u001b[39m x')
  const forged = styled('red', 'x').replace(/[0-9a-f]{16}/g, 'f'.repeat(16))
  assert.not(terminalLine(forged).includes('\u001b'))
})

it('is printable for every way to show a text', () => {
  const written: string[] = []
  const { write } = process.stdout
  process.stdout.write = (text: string | Uint8Array) => written.push(String(text)) > 0
  try {
    const out = new Output({ json: false, zone: 'UTC', layout: { width: 80, colour: true } })
    const name = 'Eve\u001b[2J\u202e\nLahore'
    out.show({}, () => [
      `plain ${name}`,
      ...out.pairs([[name, name]]),
      ...out.table([name], [{ title: 'Name', cell: (text) => text }]),
      out.style('bold', name),
      out.heading(name),
    ])
  } finally {
    process.stdout.write = write
  }
  const text = written.join('')
  assert.is(text.trimEnd().split('\n').length, 6)
  assert.equal(unsafeIn(stripVTControlCharacters(text).replaceAll('\n', '')), [])
  assert.ok(text.includes('\u001b[1m') && !text.includes('\u001b[2J'))
})

it.run()
