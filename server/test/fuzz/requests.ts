import { inputShapeOf, takesBody } from '../../http/rest-input.ts'
import type { ProcedureRecord } from '../../platform/api/procedure.ts'
import { either, fc } from '../testkit/property.ts'
import { fromSchema, idsFor } from './from-schema.ts'
import type { Targets } from './fuzzed-service.ts'
import { badJson, badName, inject, injection } from './hostile.ts'
import { badQuery, badSegment, contentType, oddHeaders, rawBytes, segment } from './odd-parts.ts'

/** One HTTP request as it goes out. */
export interface FuzzRequest {
  /** What it is about: a procedure's name, or a word for the rest. */
  about: string
  method: string
  path: string
  headers: Record<string, string>
  body: Buffer | null
}

/** JSON text of an input: as the schema wants it, with one thing wrong, or wrong altogether. */
export function inputText(input: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  const right = input.map((value) => JSON.stringify(value))
  return either(
    [6, right],
    [5, fc.tuple(input, injection).map(([value, change]) => inject(value, change))],
    [
      1,
      fc
        .tuple(right, badName, badJson)
        .map(([text, name, json]) =>
          text.replace(/\}$/, `${text === '{}' ? '' : ','}${JSON.stringify(name)}:${json}}`),
        ),
    ],
    [1, badJson],
    [1, fc.tuple(right, fc.nat(200)).map(([text, length]) => text.slice(0, length))],
  )
}

export function bodyOf(text: fc.Arbitrary<string>): fc.Arbitrary<Buffer> {
  return either([12, text.map((json) => Buffer.from(json))], [1, rawBytes])
}

/** Ends sessions, so it is called by those whose session may end. */
export function endsSessions({ name }: ProcedureRecord): boolean {
  return name.startsWith('auth.')
}

export function callerOf(
  record: ProcedureRecord,
  { tokens, spare, keys }: Targets,
): fc.Arbitrary<Record<string, string>> {
  if (endsSessions(record)) {
    return either(
      [1, fc.constant({})],
      [1, fc.constantFrom(...spare, ...keys).map((authorization) => ({ authorization }))],
    )
  }
  const rightful =
    record.meta.callers === 'public' ? (['merchant', 'creator', 'admin'] as const) : record.meta.callers
  return either(
    [8, fc.constantFrom(...rightful).map((role) => ({ authorization: tokens[role] }))],
    [1, fc.constantFrom(...Object.values(tokens), ...keys).map((authorization) => ({ authorization }))],
    [1, fc.constant({})],
  )
}

export function restRequest(record: ProcedureRecord, targets: Targets): fc.Arbitrary<FuzzRequest> {
  const { rest } = record.meta
  if (!rest) throw new Error(`${record.name} has no route`)
  const { schema, fields } = inputShapeOf(record, rest)
  const given = (source: 'path' | 'query' | 'body') =>
    fromSchema(
      {
        ...schema,
        properties: Object.fromEntries(
          [...fields]
            .filter(([, field]) => field.source === source)
            .map(([name, field]) => [name, field.schema]),
        ),
        required: schema.required?.filter((name) => fields.get(name)?.source === source),
      },
      targets,
      idsFor(rest.path, targets),
    )
  const path = fc
    .tuple(given('path'), either([9, fc.constant(null)], [1, badSegment]))
    .map(([values, bad]) =>
      rest.path.replace(
        /:(\w+)/g,
        (_, name: string) => bad ?? segment(String((values as Record<string, unknown>)[name])),
      ),
    )
  const query = fc
    .tuple(given('query'), either<string[]>([3, fc.constant([])], [1, fc.array(badQuery, { maxLength: 3 })]))
    .map(([values, bad]) =>
      [
        ...Object.entries(values as object).map(([name, value]) => `${name}=${segment(String(value))}`),
        ...bad,
      ].join('&'),
    )
  return fc
    .record({
      path,
      query,
      caller: callerOf(record, targets),
      odd: oddHeaders,
      type: contentType,
      body: takesBody(rest)
        ? bodyOf(inputText(given('body')))
        : either([9, fc.constant(null)], [1, rawBytes]),
      method: either(
        [40, fc.constant(rest.method as string)],
        [1, fc.constantFrom('HEAD', 'OPTIONS', 'PUT', 'TRACE', 'PATCH', 'DELETE')],
      ),
    })
    .map(({ path, query, caller, odd, type, body, method }) => ({
      about: record.name,
      method,
      path: query === '' ? path : `${path}?${query}`,
      headers: { ...(body && { 'content-type': type }), ...caller, ...odd },
      body: method === 'TRACE' || method === 'HEAD' ? null : body,
    }))
}
