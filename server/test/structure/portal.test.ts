// database: none
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listFiles } from '../../../scripts/testing/find-tests.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PORTAL = 'shared/client/portal'
const LIBRARIES = ['preact', 'preact/hooks', 'uplot', 'uqr']
/** Of TypeScript and styles. */
const MOST_LINES = 3400

const it = suite("the portal's sources")

const files = await Promise.all(
  (await listFiles(ROOT, [PORTAL])).map(async (path) => ({
    path,
    text: await readFile(ROOT + path, 'utf8'),
  })),
)
const textOf = (name: string) => files.find(({ path }) => path === `${PORTAL}/${name}`)?.text ?? '{}'
const scripts = files.filter(({ path }) => /\.tsx?$/.test(path))

it('import the published client, each other and the libraries for views, plots and codes only', () => {
  for (const { path, text } of scripts) {
    const depth = path.split('/').length - PORTAL.split('/').length
    const client = `${'../'.repeat(depth)}index.ts`
    for (const [, from = ''] of text.matchAll(/(?:from|import\(?) ?'([^']+)'/g)) {
      const isInside = /^(?:\.\/|(?:\.\.\/){0,1}[\w-])/.test(from) && !from.startsWith('../'.repeat(depth))
      assert.ok(from === client || isInside || LIBRARIES.includes(from), `${path} imports ${from}`)
    }
  }
})

it('never write markup', () => {
  for (const { path, text } of scripts)
    assert.not.match(text, /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML/, path)
})

it('have an Urdu text for each English one, with the same values, and no other', () => {
  const used = new Set<string>()
  for (const { text } of scripts) {
    const texts = text.matchAll(/\b(?:t|key)\(\s*(?:'((?:[^'\\]|\\.)*)'|"([^"]*)")/g)
    for (const [, single, double] of texts) used.add((single ?? double ?? '').replaceAll("\\'", "'"))
  }
  const names = JSON.parse(textOf('names.json')) as Record<string, Record<string, string | string[]>>
  for (const table of Object.values(names))
    for (const value of Object.values(table)) used.add([value].flat()[0] ?? '')
  const urdu = JSON.parse(textOf('ur.json')) as Record<string, string>
  assert.equal(Object.keys(urdu).sort(), [...used].sort())
  const valuesIn = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort()
  for (const [english, text] of Object.entries(urdu)) assert.equal(valuesIn(text), valuesIn(english), english)
})

it('stay small', () => {
  const counted = files.filter(({ path }) => /\.(tsx?|css)$/.test(path))
  const lines = counted.reduce((sum, { text }) => sum + text.trimEnd().split('\n').length, 0)
  assert.ok(lines <= MOST_LINES, `${lines} lines`)
})

it.run()
