import { inputShapeOf } from '../../http/rest-input.ts'
import type { ProcedureRecord } from '../../platform/api/procedure.ts'
import { either, fc } from '../testkit/property.ts'
import { fromSchema, idsFor } from './from-schema.ts'
import type { Targets } from './fuzzed-service.ts'
import { contentType, oddHeaders, segment } from './odd-parts.ts'
import { bodyOf, callerOf, endsSessions, type FuzzRequest, inputText } from './requests.ts'

/** A procedure's flat input. */
function inputOf(record: ProcedureRecord, targets: Targets): fc.Arbitrary<unknown> {
  const route = record.meta.rest ?? { method: 'POST', path: '/' }
  return fromSchema(inputShapeOf(record, route).schema, targets, idsFor(route.path, targets))
}

export function trpcRequest(record: ProcedureRecord, targets: Targets): fc.Arbitrary<FuzzRequest> {
  const text = inputText(inputOf(record, targets))
  return fc
    .record({
      text,
      caller: callerOf(record, targets),
      odd: oddHeaders,
      type: contentType,
      body: bodyOf(text),
    })
    .map(({ text, caller, odd, type, body }) =>
      record.type === 'mutation'
        ? {
            about: record.name,
            method: 'POST',
            path: `/trpc/${record.name}`,
            headers: { 'content-type': type, ...caller, ...odd },
            body,
          }
        : {
            about: record.name,
            method: 'GET',
            path: `/trpc/${record.name}?input=${segment(text).slice(0, 8000)}`,
            headers: { ...caller, ...odd },
            body: null,
          },
    )
}

/** Several calls in one request, with inputs that may be missing, of others, or none. */
export function trpcBatch(records: readonly ProcedureRecord[], targets: Targets): fc.Arbitrary<FuzzRequest> {
  const calm = records.filter((record) => !endsSessions(record))
  // Built once for all batches: reading a schema takes longer than all that is sent of it.
  const one = fc.oneof(
    ...calm.map((record) => {
      const input = inputOf(record, targets)
      return either([15, input.map((value) => JSON.stringify(value))], [1, inputText(input)]).map((text) => ({
        name: record.name,
        text: text === '' ? 'null' : text,
      }))
    }),
  )
  const name = either(
    [15, fc.constant(null)],
    [1, fc.constantFrom('', '.', 'offers', '__proto__', 'constructor', 'offers.list.x', 'toString')],
  )
  return fc
    .record({
      calls: fc.array(fc.tuple(one, name), { minLength: 1, maxLength: 11 }),
      keys: fc.constantFrom('numbers', 'numbers', 'numbers', 'list', 'shifted', 'negative'),
      method: fc.constantFrom('GET', 'POST'),
      flag: fc.constantFrom('batch=1', 'batch=1', 'batch=1', 'batch=0', 'batch', ''),
      token: fc.constantFrom(...Object.values(targets.tokens), ...targets.keys),
      odd: oddHeaders,
    })
    .map(({ calls, keys, method, flag, token, odd }) => {
      const names = calls.map(([call, other]) => segment(other ?? call.name)).join(',')
      const keyOf = {
        numbers: String,
        list: String,
        shifted: (n: number) => String(n + 1),
        negative: (n: number) => `-${n}`,
      }[keys]
      const text =
        keys === 'list'
          ? `[${calls.map(([call]) => call.text).join()}]`
          : `{${calls.map(([call], n) => `"${keyOf(n)}":${call.text}`).join()}}`
      const input = method === 'GET' ? `&input=${segment(text).slice(0, 9000)}` : ''
      return {
        about: 'batch',
        method,
        path: `/trpc/${names}?${flag}${input}`,
        headers: {
          authorization: token,
          ...(method === 'POST' && { 'content-type': 'application/json' }),
          ...odd,
        },
        body: method === 'POST' ? Buffer.from(text) : null,
      }
    })
}
