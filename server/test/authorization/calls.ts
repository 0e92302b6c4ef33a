import { jsonOrNull } from '../../../shared/json.ts'
import { type InputShape, inputShapeOf, takesBody } from '../../http/rest-input.ts'
import { type ProcedureRecord, type RestRoute, routesOf } from '../../platform/api/procedure.ts'
import { firstWordOf } from './event-stream.ts'

export type Input = Record<string, unknown>

/** One HTTP request, without what tells who sends it. */
export interface WebCall {
  method: string
  /** With the query. */
  path: string
  headers?: Record<string, string>
  body?: string | Buffer
}

export interface WebAnswer {
  status: number
  headers: Headers
  text: string
  /** It is what an event stream said: the headers were those of a stream. */
  streamed: boolean
}

/** How a procedure is called on each way. `rest` is missing for one that has no route, `also` without a second address. */
export function waysTo(
  record: ProcedureRecord,
  input: Input,
): { rest?: WebCall; also?: WebCall; trpc: WebCall } {
  const [rest, also] = routesOf(record).map((route) => restCall(route, inputShapeOf(record, route), input))
  return { ...(rest && { rest }), ...(also && { also }), trpc: trpcCall(record, input) }
}

/** A field that the procedure does not know travels where its other fields do: in the query or the body. */
function restCall(route: RestRoute, { fields }: InputShape, input: Input): WebCall {
  const { method, path } = route
  const query = new URLSearchParams()
  const body: [string, unknown][] = []
  let filled = path
  for (const [name, value] of Object.entries(input)) {
    const source = fields.get(name)?.source ?? (takesBody(route) ? 'body' : 'query')
    if (source === 'path') filled = filled.replace(`:${name}`, encodeURIComponent(String(value)))
    else if (source === 'body') body.push([name, value])
    else query.append(name, String(value))
  }
  const address = query.size > 0 ? `${filled}?${query}` : filled
  return takesBody(route)
    ? { method, path: address, ...json(Object.fromEntries(body)) }
    : { method, path: address }
}

function trpcCall({ name, type }: ProcedureRecord, input: Input): WebCall {
  if (type === 'mutation') return { method: 'POST', path: `/trpc/${name}`, ...json(input) }
  return { method: 'GET', path: `/trpc/${name}?input=${encodeURIComponent(JSON.stringify(input))}` }
}

function json(value: Input): Pick<WebCall, 'headers' | 'body'> {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) }
}

/** Sends it for the holder of this `Authorization` header. Of a stream only the first word is read. */
export async function send(base: string, call: WebCall, authorization: string | null): Promise<WebAnswer> {
  const answer = await fetch(`${base}${call.path}`, {
    method: call.method,
    redirect: 'manual',
    headers: { ...call.headers, ...(authorization !== null && { authorization }) },
    body: call.body as BodyInit | undefined,
  })
  const { status, headers, body } = answer
  const streamed = body !== null && (headers.get('content-type')?.startsWith('text/event-stream') ?? false)
  if (streamed) return { headers, streamed, ...(await firstWordOf(body)) }
  return { status, headers, streamed, text: await answer.text() }
}

/** The problem in an answer of either way; empty for an answer that is none. */
export function problemOf({ text }: WebAnswer): { code?: string; issues?: { path: string }[] } {
  const body = jsonOrNull(text) as { code?: unknown; error?: { data?: { problem?: object } } } | null
  if (typeof body?.code === 'string') return body as { code: string }
  return body?.error?.data?.problem ?? {}
}
