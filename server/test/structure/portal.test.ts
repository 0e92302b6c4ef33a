// database: none
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import ts from 'typescript-5'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { listFiles } from '../../../scripts/testing/find-tests.ts'
import '../../platform/api/input-messages.ts'
import { ERROR_STATUS } from '../../../shared/error-codes.ts'
import { SALE_REJECTION_REASONS } from '../../../shared/rejection-reasons.ts'
import { FLAG_KINDS } from '../../../shared/schemas/admin.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PORTAL = 'shared/client/portal'
const LIBRARIES = ['preact', 'preact/hooks', 'uplot', 'uqr']
/** Beside the schemas, what says why a field is refused. */
const FIELD_RULES = [
  'server/offers/product-url.rule.ts',
  'server/users/bank-accounts.rule.ts',
  'server/users/password-strength.rule.ts',
]
/** Files that write what the portal shows: flags, their notes, and why deliveries failed. */
const WRITERS =
  /\b(?:raiseFlags?|flag[A-Z]\w*|note[A-Z]\w*|closeFlag)\(|'\.\/webhooks\.store\.ts'|WebhookOutcome/
/** What has its sentences: properties, constants, functions and calls. */
const SAID =
  /summar|^(?:\[?what\b.*|sign|BROKEN|RETRIED|DISABLED|REASONS|error|describe|notSent|failPending|close\w*Flag|closeAnswered)$/i
/** What has the names of evidence. */
const FOUND = /^(?:evidence\w*|ours|theirs|figuresOf|theirFigures|billingView|use|shown|noteOf)$/
/** Of TypeScript and styles: lines of code, and with blank lines and comments. */
const MOST_CODE = 2500
const MOST_LINES = 2912

const it = suite("the portal's sources")

const files = await Promise.all(
  (await listFiles(ROOT, [PORTAL])).map(async (path) => ({
    path,
    text: await readFile(ROOT + path, 'utf8'),
  })),
)
interface Listed {
  title: string
  lead?: string
  empty: string[]
  columns?: string[]
  filters?: Record<string, string[]>
}
interface Action {
  label: string
  text?: string
  fields?: string[]
}
const textOf = (name: string) => files.find(({ path }) => path === `${PORTAL}/${name}`)?.text ?? '{}'
const patternOf = (text: string) => text.replaceAll(/[.*+?()[\]|\\^$]/g, '\\$&').replaceAll(/\{\w+\}/g, '.+')
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
  const { options: _, catalogue, ...names } = JSON.parse(textOf('names.json'))
  const { lists, actions, ...members } = JSON.parse(textOf('members.json'))
  for (const table of Object.values({ ...names, ...members }))
    for (const value of Object.values(table as Record<string, string | string[]>))
      used.add([value].flat()[0] ?? '')
  for (const { title, lead = title, empty } of [catalogue, ...Object.values<Listed>(lists)])
    for (const text of [title, lead, ...empty]) used.add(text)
  for (const { label, text = label } of Object.values<Action>(actions)) used.add(label).add(text)
  const urdu = JSON.parse(textOf('ur.json')) as Record<string, string>
  assert.equal(Object.keys(urdu).sort(), [...used].sort())
  const valuesIn = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort()
  for (const [english, text] of Object.entries(urdu)) assert.equal(valuesIn(text), valuesIn(english), english)
  const { fields, words, urdu: more } = JSON.parse(textOf('flags.json'))
  const labels = [fields, words].flatMap((table) =>
    Object.values<string[]>(table).map(([label = '']) => label),
  )
  const missing = [...new Set(labels)].filter((label) => !used.has(label))
  assert.equal(Object.keys(more).sort(), missing.sort())
  // They are added to those of the page, which they must not change.
  for (const name of Object.keys(fields)) assert.not.ok(Object.hasOwn(names.fields, name), name)
  for (const value of Object.keys(words)) assert.not.ok(Object.hasOwn(names.words, value), value)
})

it('name each column, filter and field of lists and actions', () => {
  const { fields } = JSON.parse(textOf('names.json'))
  const { lists, actions, checks } = JSON.parse(textOf('members.json'))
  const known = (name: string) => name.endsWith('_at') || Object.hasOwn(fields, name)
  for (const { columns = [], filters = {} } of Object.values<Listed>(lists))
    for (const name of [...columns, ...Object.keys(filters)])
      assert.ok(known(name.replace(/^.*: /, '')), name)
  for (const { fields = [] } of Object.values<Action>(actions))
    for (const name of fields) assert.ok(known(name.replace('?', '')), name)
  assert.equal(lists.sales.filters.rejection_reason, ['', ...SALE_REJECTION_REASONS])
  assert.equal(lists.flags.filters.kind, ['', ...Object.keys(FLAG_KINDS)])
  assert.equal(Object.keys(checks), [...SALE_REJECTION_REASONS])
})

it('have an Urdu text for each refusal, each field that is refused, and each kind of flag', async () => {
  const service = Object.keys(JSON.parse(textOf('ur-service.json')))
  for (const code of Object.keys(ERROR_STATUS)) assert.ok(service.includes(code), code)
  const { words } = JSON.parse(textOf('names.json'))
  for (const kind of Object.keys(FLAG_KINDS)) assert.ok(words[kind], kind)
  const known = new RegExp(`^(?:${service.map(patternOf).join('|')})$`)
  for (const path of [...(await listFiles(ROOT, ['shared/schemas'])), ...FIELD_RULES]) {
    const text = path.endsWith('.test.ts') ? '' : await readFile(ROOT + path, 'utf8')
    for (const [, , message = ''] of text.matchAll(/(['`])((?:must|is|has|repeats) [^'`]{4,})\1/g))
      assert.match(message, known, path)
  }
  const [text, list] = [z.string().min(2).max(3), z.array(z.string()).min(1).max(2)]
  const refused: [z.ZodType, unknown[]][] = [
    [text, [undefined, 1, '', 'a', 'abcd']],
    [list, ['a', [], ['a', 'b', 'c']]],
    [z.int().min(1).max(2), ['a', 1.5, 0, 3]],
    [z.enum(['a', 'b']), ['c']],
    [z.boolean(), [1]],
    [z.strictObject({}), [{ more: 1 }, 1]],
  ]
  for (const [schema, values] of refused)
    for (const value of values)
      for (const { message } of schema.safeParse(value).error?.issues ?? []) assert.match(message, known)
})

/** The sentences that a file writes, with `x` for each value, and the names of the evidence that it collects. */
function writtenIn(path: string, text: string) {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest)
  const written = { sentences: [] as string[], names: [] as string[] }
  const visit = (node: ts.Node, isSaid: boolean, isFound: boolean): void => {
    const namer = ts.isCallExpression(node) ? node.expression : (node as ts.Node & { name?: ts.Node }).name
    const name = namer?.getText(source) ?? ''
    const parts = ts.isTemplateExpression(node)
      ? [node.head, ...node.templateSpans.map((one) => one.literal)]
      : []
    const sentence = ts.isStringLiteralLike(node) ? node.text : parts.map((part) => part.text).join('x')
    if (isSaid && /^[A-Zx]\S* \S+ \S/.test(sentence)) written.sentences.push(sentence)
    const isName = ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node)
    if (isFound && isName && /^[a-z_\d]+$/.test(name)) written.names.push(name)
    ts.forEachChild(node, (child) => visit(child, isSaid || SAID.test(name), isFound || FOUND.test(name)))
  }
  visit(source, false, false)
  return written
}

it('have an Urdu text for each summary and note of a flag, and a name for what was found', async () => {
  const { service, fields } = JSON.parse(textOf('flags.json'))
  const sentences = Object.keys({ ...JSON.parse(textOf('ur-service.json')), ...service })
  const patterns = sentences.map((text) => new RegExp(`^${patternOf(text)}$`))
  // `order` holds the facts of a note and is not shown.
  const names = { order: [], ...JSON.parse(textOf('names.json')).fields, ...fields }
  const missing: string[] = []
  let all = ''
  for (const path of await listFiles(ROOT, ['server'])) {
    if (!path.endsWith('.ts') || path.includes('test')) continue
    const text = await readFile(ROOT + path, 'utf8')
    all += text
    if (!WRITERS.test(text) || path.endsWith('.procedures.ts')) continue
    const written = writtenIn(path, text)
    const unknown = written.sentences.filter((one) => !patterns.some((pattern) => pattern.test(one)))
    const nameless = written.names.filter((name) => !Object.hasOwn(names, name))
    missing.push(...[...unknown, ...nameless].map((text) => `${path}: ${text}`))
  }
  assert.equal(missing, [])
  for (const text of Object.keys(service)) {
    const first = patterns.findIndex((pattern) => pattern.test(text.replaceAll(/\{\w+\}/g, 'x')))
    assert.is(sentences[first], text)
    for (const part of text.split(/\{\w+\}/).map((one) => one.trim()))
      assert.ok(all.includes(part) || all.includes(part.replaceAll(' ', '_')), text)
  }
})

it('stay small', () => {
  const counted = files.filter(({ path }) => /\.(tsx?|css)$/.test(path))
  const code = (text: string) => text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '').match(/^.*\S/gm) ?? []
  const all = (text: string) => text.trimEnd().split('\n')
  const sum = (linesOf: typeof all) => counted.reduce((lines, { text }) => lines + linesOf(text).length, 0)
  assert.ok(sum(code) <= MOST_CODE, `${sum(code)} lines of code`)
  assert.ok(sum(all) <= MOST_LINES, `${sum(all)} lines`)
})

it.run()
