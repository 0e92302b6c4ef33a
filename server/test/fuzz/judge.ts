import { problem } from '../../../shared/schemas/common.ts'
import type { FuzzRequest } from './requests.ts'
import { type FuzzAnswer, type RawAnswer, TIMEOUT_MS } from './send.ts'

/** Words of the inside that no answer may let out. */
const INSIDE =
  /\bat [\w.<> ]+ \(|node_modules|\.ts:\d+|sqlite|postgres|kysely|select .+ from|syntax error at/i

/** What is wrong with an answer; `null` for one as it should be. */
export function flawOf(request: FuzzRequest, answer: FuzzAnswer): string | null {
  const { status, took, text } = answer
  if (took > TIMEOUT_MS) return `took ${Math.round(took)} ms`
  if (status === 503) return announcedFlaw(request, answer)
  if (status >= 500) return `status ${status}`
  // Of a batch, which may also come as a stream of lines.
  if (request.path.startsWith('/trpc/') && text.includes('"code":"internal"')) return 'a bug inside'
  if (request.method === 'HEAD' || status < 400) return status === 207 ? batchFlaw(answer) : null
  return bodyFlaw(request, answer)
}

/** A server may say that it is busy, with the time to wait and, where an answer has a body, in the words of a problem. */
function announcedFlaw({ method }: FuzzRequest, { headers, text }: FuzzAnswer): string | null {
  const said = method === 'HEAD' || text.includes('"code":"unavailable"')
  return headers['retry-after'] && said ? null : 'a 503 that says nothing'
}

function bodyFlaw(request: FuzzRequest, answer: FuzzAnswer): string | null {
  const type = String(answer.headers['content-type'])
  if (answer.headers['x-request-id'] === undefined) return 'no request id in the headers'
  if (request.path.startsWith('/trpc/')) return batchFlaw(answer)
  // Guides and links are for people, also where there is none.
  if (
    answer.status === 404 &&
    /^\/(docs\/guides|\/*go)\//i.test(request.path) &&
    type.startsWith('text/html')
  )
    return null
  if (type !== 'application/problem+json') return `an error of the type ${type}`
  return problemFlaw(parsed(answer.text), answer.status)
}

interface TrpcPart {
  result?: unknown
  error?: { data?: { problem?: unknown; httpStatus?: number } }
}

function batchFlaw({ text, status }: FuzzAnswer): string | null {
  for (const part of [parsed(text)].flat() as (TrpcPart | null | string)[]) {
    if (part !== null && typeof part === 'object' && part.result !== undefined) continue
    const error = typeof part === 'object' ? part?.error : undefined
    // What is no tRPC route at all is answered as everywhere else.
    const flaw = error
      ? problemFlaw(error.data?.problem, error.data?.httpStatus ?? status)
      : problemFlaw(part, status)
    if (flaw) return flaw
  }
  return null
}

const UNTRANSLATED = /^(Invalid|Too|Unrecognized|Expected)/

function problemFlaw(body: unknown, status: number): string | null {
  const result = problem.strict().safeParse(body)
  if (!result.success) return `no problem object: ${JSON.stringify(body)?.slice(0, 300)}`
  if (result.data.status !== status) return `a problem of ${result.data.status} under the status ${status}`
  if (status >= 500 && status !== 503) return `status ${status} inside`
  const { code, detail, issues = [] } = result.data
  if (code === 'validation_failed' && issues.length === 0) return 'validation_failed without issues'
  if (new Set(issues.map(({ path }) => path)).size < issues.length) return 'two issues of one field'
  if (issues.some(({ message }) => UNTRANSLATED.test(message))) return `zod's own words: ${detail}`
  const said = [detail, ...issues.map(({ message }) => message)].join('\n')
  return INSIDE.test(said) ? `lets out: ${said.slice(0, 300)}` : null
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The same for bytes: every status in what came back is below 500, and the connection was closed in time. */
export function rawFlawOf({ text, took, hung }: RawAnswer): string | null {
  if (hung) return 'the connection stays open'
  if (took > TIMEOUT_MS) return `took ${Math.round(took)} ms`
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]))
  const bad = statuses.find((status) => status >= 500)
  if (bad !== undefined && !/retry-after:/i.test(text)) return `status ${bad}`
  return INSIDE.test(text) && /"code":"internal"/.test(text) ? 'lets out its inside' : null
}
