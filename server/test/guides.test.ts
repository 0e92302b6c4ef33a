// database: none
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ERROR_STATUS } from '../../shared/error-codes.ts'
import { headingAnchor } from '../http/guides/render-guide.ts'
import { KINDS, tablesOf } from './testkit/unprotected.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const GUIDES = join(ROOT, 'server', 'guides')
const DECISIONS = join(ROOT, 'server', 'decisions')

/** The README must fit on one screen and a half. */
const README_BYTES = 8192

const markdownIn = (folder: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
const DOCUMENTS = [
  join(ROOT, 'README.md'),
  join(ROOT, 'server', 'ARCHITECTURE.md'),
  ...markdownIn(GUIDES),
  ...markdownIn(DECISIONS),
]

/** The anchors that headings get in rendered Markdown. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => headingAnchor(heading))
}

/** Links in `text` that lead to no file or heading. */
function deadLinks(document: string, text: string): string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? document : join(dirname(document), path)
      if (!existsSync(target)) return true
      return anchor !== undefined && !anchorsOf(readFileSync(target, 'utf8')).includes(anchor)
    })
}

const guides = suite('README and guides')

guides('the README is at most 8 KB', () => {
  assert.ok(statSync(join(ROOT, 'README.md')).size <= README_BYTES)
})

guides('every link leads to a file or heading', () => {
  const dead = DOCUMENTS.flatMap((path) =>
    deadLinks(path, readFileSync(path, 'utf8')).map((link) => `${path.slice(ROOT.length)}: ${link}`),
  )
  assert.equal(dead, [])
})

guides('the security guide lists what verification does not find', () => {
  const text = readFileSync(join(GUIDES, 'security.md'), 'utf8').replaceAll(/\s+/g, ' ')
  for (const kind of KINDS) assert.match(text, tablesOf(kind))
})

guides('the API guide explains every error code', () => {
  const text = readFileSync(join(GUIDES, 'api.md'), 'utf8')
  const rows = [...text.matchAll(/^\| `([a-z_]+)` \| (\d{3}) \| .{5}/gm)]
  assert.equal(Object.fromEntries(rows.map(([, code, status]) => [code, Number(status)])), ERROR_STATUS)
})

guides('a dead link is found', () => {
  const document = join(ROOT, 'README.md')
  const text = '[a](missing.md) [b](#no-such-heading) [c](#quick-start) [d](https://example.com)'
  assert.equal(deadLinks(document, text), ['missing.md', '#no-such-heading'])
})

guides('the README links every guide', () => {
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const missing = markdownIn(GUIDES).filter((path) => !text.includes(`(${path.slice(ROOT.length)})`))
  assert.equal(missing, [])
})

guides.run()
