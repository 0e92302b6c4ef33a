// database: none
import { readFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ERROR_STATUS } from '../../../shared/error-codes.ts'
import { proceduresOf } from '../../platform/api/procedure.ts'
import { pluck, pluckAll } from '../../test/testkit/pluck.ts'
import { appRouter } from '../router.ts'
import { openApiDocument } from './openapi.ts'

interface Operation {
  operationId: string
  tags: string[]
  summary?: string
  security: Record<string, unknown>[]
  parameters: { name: string; in: string; required: boolean; schema: Record<string, unknown> }[]
  requestBody?: { content: { 'application/json': { schema: Body; example: Record<string, unknown> } } }
  responses: Record<string, Response>
}
interface Response {
  headers?: Record<string, { example?: unknown }>
  content?: Record<string, { example?: unknown; examples?: Record<string, unknown> }>
}
interface Body {
  properties: Record<string, unknown>
  required?: string[]
  additionalProperties: boolean
}

const document = openApiDocument(appRouter, 'http://127.0.0.1:3000')
const paths = document.paths as Record<string, Record<string, Operation>>
const operations = Object.values(paths).flatMap((path) => Object.values(path))
const byName = (name: string) => {
  const operation = operations.find(({ operationId }) => operationId === name)
  if (!operation) throw new Error(`no operation ${name}`)
  return operation
}

const bodyOf = (name: string) => byName(name).requestBody?.content['application/json']
const routed = proceduresOf(appRouter).filter(({ meta }) => meta.rest)
const problemsIn = (response: Response | undefined): Record<string, unknown> =>
  response?.content?.['application/problem+json']?.examples ?? {}

test('describes every procedure that has a route, and the routes that are no procedures', () => {
  const edges = [
    ...'redirect jobs.file stores.script clients.package mail.unsubscribePage mail.unsubscribe'.split(' '),
    ...'webhooks.storeSales webhooks.processor health readiness metrics securityTxt'.split(' '),
  ]
  const expected = [...routed.map(({ name }) => name), ...edges].sort()
  assert.equal(pluck(operations, 'operationId').sort(), expected)
})

test("carries the package's version", () => {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  assert.is((document.info as { version: string }).version, version)
})

test('tells path, query and body apart', () => {
  const list = byName('offers.list')
  const inAddress = list.parameters.filter((parameter) => parameter.in !== 'header')
  assert.ok(inAddress.length > 5 && inAddress.every((parameter) => parameter.in === 'query'))
  assert.ok(list.parameters.every((parameter) => !parameter.required))
  assert.is(list.requestBody, undefined)
  const { parameters } = byName('offers.update')
  assert.equal(pluckAll(parameters, 'name', 'in', 'required'), [['id', 'path', true]])
  const body = bodyOf('offers.update')?.schema
  assert.ok(body?.properties.title && !body.properties.id)
  assert.is(body.additionalProperties, false)
  const registration = bodyOf('auth.register')
  assert.equal(registration?.schema.required, ['email', 'password', 'role', 'display_name'])
  assert.is(registration?.example.role, 'creator')
})

test('explains how to start, and every error code', () => {
  const { description } = document.info as { description: string }
  for (const part of ['/auth/register', 'authorization: Bearer', 'next_cursor', 'docs/guides/quickstart'])
    assert.ok(description.includes(part), part)
  for (const [code, status] of Object.entries(ERROR_STATUS))
    assert.ok(description.includes(`| \`${code}\` | ${status} | `), code)
})

test('lists the operations in the order of the tags, which all have a description', () => {
  const tags = (document.tags as { name: string; description: string }[]).map(({ name }) => name)
  const used = [...new Set(operations.flatMap((operation) => operation.tags))]
  assert.equal(used, tags)
})

test('lets answers grow', () => {
  const schemas = JSON.stringify((document.components as { schemas: unknown }).schemas)
  assert.not.match(schemas, /additionalProperties/)
})

test('says who may call', () => {
  for (const [names, schemes] of [
    ['offers.list links.resolve', 'none bearer apiKey'],
    ['users.me', 'bearer apiKey'],
    ['users.updateMe auth.createApiKey admin.vetOffer', 'bearer'],
    ['auth.register auth.login redirect health', ''],
    ['webhooks.storeSales', 'storeSignature storeSignatureX'],
    ['webhooks.processor', 'processorSignature'],
  ] as const) {
    const wanted = (schemes.match(/\w+/g) ?? []).map((scheme) => (scheme === 'none' ? {} : { [scheme]: [] }))
    for (const name of names.split(' ')) assert.equal(byName(name).security, wanted, name)
  }
  assert.not.ok(byName('links.resolve').responses['401'], 'a public operation asks for no token')
  // 403: an admin without a second factor, and an API key.
  for (const [name, status] of Object.entries({ 'users.me': 401, 'stores.connect': 403 }))
    assert.ok(byName(name).responses[status], name)
  for (const name of ['users.me', 'auth.logout']) assert.ok(byName(name).responses['403'], name)
})

test('gives every declared refusal an example, of the operation itself where operations differ', () => {
  const differing = ['conflict', 'quota_exceeded', 'already_decided']
  for (const { name, meta } of routed) {
    for (const code of meta.errors ?? []) {
      const response = byName(name).responses[String(ERROR_STATUS[code])]
      const example = problemsIn(response)[code] as { value: { detail: string } } | undefined
      assert.ok(example, `${name} ${code}`)
      if (!differing.includes(code)) continue
      if (code === 'already_decided' && name.startsWith('applications.')) continue
      assert.ok(meta.details?.[code], `${name} ${code}`)
      assert.is(example.value.detail, meta.details[code])
    }
  }
})

test('gives every operation a summary, its callers, an example and its refusals', () => {
  for (const operation of operations) {
    const { operationId, summary, security, responses } = operation
    assert.ok(summary && summary.length <= 80 && !summary.endsWith('.'), operationId)
    assert.ok(Array.isArray(security), operationId)
    const successes = Object.entries(responses).filter(([status]) => status < '400' && status !== '304')
    assert.is(successes.length, 1, operationId)
    const [status, success] = successes[0] ?? []
    const contents = Object.values(success?.content ?? {})
    if (status === '204') assert.is(success?.content, undefined, operationId)
    else if (status === '302') assert.ok(success?.headers?.Location?.example, operationId)
    else
      assert.ok(
        contents.some((one) => 'example' in one || 'examples' in one),
        operationId,
      )
    const refusals = Object.entries(responses).filter(([code]) => code >= '400')
    assert.ok(refusals.length > 0, operationId)
    for (const [code, response] of refusals)
      assert.is.not(Object.keys(problemsIn(response)).length, 0, `${operationId} ${code}`)
  }
})

test('tells that every procedure and file is counted', () => {
  const uncounted = operations.filter(({ responses }) => !responses['429'])
  const edges = ['health', 'metrics', 'readiness', 'redirect', 'stores.script', 'webhooks.processor']
  assert.equal(pluck(uncounted, 'operationId').sort(), edges)
  const headersOf = (response: Response | undefined) => Object.keys(response?.headers ?? {})
  const counts = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset']
  for (const { operationId, responses } of operations) {
    if (responses['503']) assert.equal(headersOf(responses['503']), ['Retry-After'], operationId)
    if (!responses['429'] || operationId === 'webhooks.storeSales') continue
    assert.equal(headersOf(responses['429']), ['Retry-After', ...counts], operationId)
    const success = Object.entries(responses).find(([status]) => status < '300')?.[1]
    assert.equal(headersOf(success).slice(-3), counts, operationId)
  }
  assert.equal(headersOf(byName('webhooks.storeSales').responses['429']), ['Retry-After'])
})

test('shows what a coupon code may be: as it is sent, and as it is stored', () => {
  const sent = /^\s*[A-Za-z0-9_-]{3,40}\s*$/.source
  const stored = '^[A-Z0-9_-]{3,40}$'
  const patternIn = (schema: unknown) => /"pattern":("[^"]*")/.exec(JSON.stringify(schema))?.[1] ?? '""'
  for (const name of ['applications.decide', 'links.setCoupon']) {
    const body = bodyOf(name)?.schema
    assert.is(JSON.parse(patternIn(body?.properties.coupon_code)), sent, name)
  }
  const { schemas } = document.components as { schemas: Record<string, Body> }
  for (const name of ['AffiliateLink', 'ResolvedLink'])
    assert.is(JSON.parse(patternIn(schemas[name]?.properties.coupon_code)), stored, name)
})

test('shows a looked-up link to anyone, and with its coupon code to its merchant, creator and admins', () => {
  const answer = byName('links.resolve').responses['200']?.content?.['application/json']
  const { anyone, party } = (answer?.examples ?? {}) as Record<string, { value: object }>
  assert.not.ok('coupon_code' in (anyone?.value ?? {}))
  assert.equal(party?.value, { ...anyone?.value, coupon_code: 'SANA10' })
})

test('says which answers have a tag, and that a client that sends it may get 304', () => {
  const tagged = operations.filter(({ responses }) => '304' in responses)
  const names = ['clients.package', 'offers.categories', 'offers.get', 'offers.list', 'stores.script']
  assert.equal(pluck(tagged, 'operationId').sort(), names)
  for (const { operationId, parameters, responses } of tagged) {
    const ofTag = parameters.find(({ name }) => name === 'If-None-Match')
    assert.equal([ofTag?.in, Boolean(ofTag?.required)], ['header', false], operationId)
    for (const status of ['200', '304']) {
      const headers = Object.keys(responses[status]?.headers ?? {})
      assert.equal(headers.slice(0, 2), ['ETag', 'Cache-Control'], operationId)
    }
    assert.is(responses['304']?.content, undefined)
  }
})

test('has what generators of other languages read', () => {
  const schemas: Record<string, unknown>[] = []
  JSON.stringify(document, (_, value) => {
    if (value?.pattern || value?.anyOf) schemas.push(value)
    return value
  })
  for (const { pattern, anyOf } of schemas) {
    if (typeof pattern === 'string') {
      assert.not.match(pattern, /\\[pPu]|\(\?[^:]|[*+?}]\+/, 'RE2 and Python read it')
      assert.ok(new RegExp(pattern) && new RegExp(pattern, 'u'))
    }
    // Anything else says `type: [.., 'null']`.
    const [only, none] = (anyOf ?? []) as { $ref?: string; enum?: string[]; type?: string }[]
    if (none?.type === 'null') assert.ok(only?.$ref || only?.enum, JSON.stringify(anyOf))
  }
  type Field = { pattern: string; type: unknown } | undefined
  const { title, description } = (bodyOf('offers.create')?.schema.properties ?? {}) as Record<string, Field>
  assert.equal(description?.type, ['string', 'null'])
  for (const [text, line, lines] of [
    ['کراچی – 2 😀', true, true],
    ['two\nlines\tand a tab', false, true],
    ['a\0b', false, false],
    ['a\x85b', false, false],
  ] as const) {
    assert.is(new RegExp(title?.pattern ?? '').test(text), line, text)
    assert.is(new RegExp(description?.pattern ?? '').test(text), lines, text)
  }
  for (const [path, { delete: operation }] of Object.entries(paths))
    assert.is(operation?.requestBody, undefined, path)
  const functions = operations.map(({ operationId }) => operationId.replaceAll('.', '').toLowerCase())
  assert.is(new Set(functions).size, functions.length, 'the names of functions differ')
})

test.run()
