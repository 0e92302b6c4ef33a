import { z } from 'zod'
import { parseMoney } from '../../shared/money.ts'
import type { CallOutcome, LookupOutcome } from './port.ts'

/** What came back over HTTP, already bounded in size. `body` is null when it was not JSON. */
export interface HttpAnswer {
  status: number
  retryAfter: string | null
  body: unknown
}

const MAX_DETAIL_LENGTH = 300
const MAX_RETRY_AFTER_MS = 24 * 3_600_000
/** Known not to have happened: the processor turned the call away before it looked at it. */
const NOT_YET = new Set([425, 429])
const MAY_HAVE_HAPPENED = new Set([408, 409])

const id = z.string().regex(/^[^\p{Cc}]{1,200}$/u)
// A page that we would send merchants to: a bad one is left out, the invoice itself still counts.
const hostedUrl = z
  .string()
  .max(2048)
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''))
  .nullish()
  .catch(null)

const createdSchema = z.object({ id, hosted_url: hostedUrl })
const foundSchema = z.object({
  items: z
    .array(
      z.object({
        id,
        reference: z.string(),
        amount: z.string().transform((text, context) => {
          const amount = parseMoney(text)
          if (amount !== null && amount >= 0) return amount
          context.addIssue({ code: 'custom', message: 'no amount of money' })
          return z.NEVER
        }),
        currency: z.string().regex(/^[A-Z]{3}$/),
        status: z.string().min(1).max(100),
        hosted_url: hostedUrl,
      }),
    )
    .max(100),
})

/** The outcome of a POST, by the table at `CallOutcome`. `now` is epoch ms (for a Retry-After that is a date). */
export function readCallAnswer(answer: HttpAnswer, now: number): CallOutcome {
  const { status } = answer
  if (status === 200 || status === 201) {
    const created = createdSchema.safeParse(answer.body)
    if (!created.success) return { kind: 'unknown', detail: `answered ${status} without a readable id` }
    return { kind: 'created', id: created.data.id, hostedUrl: created.data.hosted_url ?? null }
  }
  const detail = describe(answer)
  const pause = retryAfterMs(answer.retryAfter, now)
  const waiting = pause === null ? {} : { retryAfterMs: pause }
  if (NOT_YET.has(status)) return { kind: 'retry', detail, ...waiting }
  if (status >= 400 && status < 500 && !MAY_HAVE_HAPPENED.has(status))
    return { kind: 'refused', status, detail }
  return { kind: 'unknown', detail, ...waiting }
}

/**
 * The outcome of a look-up. An answer that lists another reference is worth nothing: such a processor ignored the
 * filter, so neither its items nor their absence say anything about ours.
 */
export function readLookupAnswer(answer: HttpAnswer, reference: string): LookupOutcome {
  if (answer.status !== 200) return { kind: 'unavailable', detail: describe(answer) }
  const found = foundSchema.safeParse(answer.body)
  if (!found.success) {
    const where = found.error.issues[0]?.path.join('.') || 'body'
    return { kind: 'unavailable', detail: `the look-up's answer is malformed (${where})` }
  }
  if (found.data.items.some((item) => item.reference !== reference)) {
    return { kind: 'unavailable', detail: 'the look-up answered other references than the one asked for' }
  }
  const items = found.data.items.map(({ hosted_url, ...item }) =>
    hosted_url ? { ...item, hosted_url } : item,
  )
  return { kind: 'found', items }
}

/** `status: words`, with the processor's own words where it has some. */
function describe(answer: HttpAnswer): string {
  const words = z.record(z.string(), z.unknown()).safeParse(answer.body).data ?? {}
  const said = [words.detail, words.message, words.error, words.title].find(
    (word) => typeof word === 'string',
  )
  const text = typeof said === 'string' ? said.toWellFormed().replace(/\p{Cc}+/gu, ' ') : ''
  return `answered ${answer.status}${text === '' ? '' : `: ${text}`}`.slice(0, MAX_DETAIL_LENGTH)
}

function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null
  const pause = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isNaN(pause) ? null : Math.min(Math.max(pause, 0), MAX_RETRY_AFTER_MS)
}
