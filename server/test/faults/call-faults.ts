import { MAX_ANSWER_BYTES } from '../../processor/http-exchange.ts'

export type CallKind = 'invoice' | 'payout'

/** What goes over the wire in place of an answer that is as it should be. */
export type Reply =
  | { kind: 'send'; status: number; body: string; headers?: Record<string, string> }
  /** The answer never comes, and the caller's timeout ends. */
  | { kind: 'silence' }
  /** The connection breaks, after the head and half of the body or before anything. */
  | { kind: 'reset'; midBody: boolean }
  /** Nothing listens at the address. */
  | { kind: 'no_connection' }

/** What is known when a faulty answer is written. */
export interface CallContext {
  /** The processor's id of what the call made; made up where it made nothing. */
  id: string
  /** The id of another account's invoice or payout. */
  othersId: string
  /** Epoch ms. */
  now: number
}

export interface CallFault {
  words: string
  /** Whether the processor does what it was asked for, whatever it then answers. */
  takesEffect: boolean
  /** The event about it reaches us, and is tried, before the answer goes out. */
  eventFirst?: true
  /** What we must make of it: a final no, or the wrong id kept until an event shows the other one. */
  means?: 'refused' | 'wrong_id'
  /** How long it asks us to wait. */
  waitMs?: number
  reply(context: CallContext): Reply
}

const json = (status: number, body: unknown, headers: Record<string, string> = {}): Reply => ({
  kind: 'send',
  status,
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json', ...headers },
})
const raw = (status: number, body: string, headers: Record<string, string> = {}): Reply => ({
  kind: 'send',
  status,
  body,
  headers,
})
const error = (status: number, headers?: Record<string, string>) => () =>
  json(status, { message: `status ${status}` }, headers)
const silence = (): Reply => ({ kind: 'silence' })
const created = ({ id }: CallContext) => json(201, { id, hosted_url: `https://pay.example/${id}` })

/** Beyond what an answer may have. */
export const HUGE = 'x'.repeat(MAX_ANSWER_BYTES)
const BUSY_S = 120

export const CALL_FAULTS = {
  ok: { words: 'answered 201', takesEffect: true, reply: created },
  ok_200: { words: 'answered 200 instead of 201', takesEffect: true, reply: ({ id }) => json(200, { id }) },
  refused_400: { words: 'refused with 400', takesEffect: false, means: 'refused', reply: error(400) },
  refused_422: { words: 'refused with 422', takesEffect: false, means: 'refused', reply: error(422) },
  too_early: { words: 'answered 425, nothing done', takesEffect: false, reply: error(425) },
  busy: {
    words: 'answered 429 with seconds to wait, nothing done',
    takesEffect: false,
    waitMs: BUSY_S * 1000,
    reply: error(429, { 'retry-after': String(BUSY_S) }),
  },
  busy_until: {
    words: 'answered 429 with a date to wait for, nothing done',
    takesEffect: false,
    waitMs: BUSY_S * 1000,
    reply: ({ now }) => json(429, {}, { 'retry-after': new Date(now + BUSY_S * 1000 + 999).toUTCString() }),
  },
  slow_408: { words: 'answered 408, nothing done', takesEffect: false, reply: error(408) },
  in_use_409: { words: 'did it, and answered 409', takesEffect: true, reply: error(409) },
  error_500: { words: 'answered 500, nothing done', takesEffect: false, reply: error(500) },
  error_500_done: { words: 'did it, and answered 500', takesEffect: true, reply: error(500) },
  error_503: {
    words: 'answered 503 with a time to wait, nothing done',
    takesEffect: false,
    waitMs: 30_000,
    reply: error(503, { 'retry-after': '30' }),
  },
  error_503_done: { words: 'did it, and answered 503', takesEffect: true, reply: error(503) },
  malformed: {
    words: 'did it, and answered half of a JSON text',
    takesEffect: true,
    reply: () => raw(201, '{"id":"'),
  },
  malformed_nothing: {
    words: 'answered 201 with no JSON, nothing done',
    takesEffect: false,
    reply: () => raw(201, '<html>'),
  },
  wrong_shape: {
    words: 'did it, and answered without an id',
    takesEffect: true,
    reply: () => json(201, { ok: true }),
  },
  unreadable_id: {
    words: 'did it, and answered an id that no id can be',
    takesEffect: true,
    reply: () => json(201, { id: ['a\u0000b'] }),
  },
  unknown_id: {
    words: 'did it, and answered an id that it does not know itself',
    takesEffect: true,
    means: 'wrong_id',
    reply: ({ id }) => json(201, { id: `${id}_not` }),
  },
  others_id: {
    words: "did it, and answered the id of another account's",
    takesEffect: true,
    reply: ({ othersId }) => json(201, { id: othersId }),
  },
  empty: { words: 'did it, and answered 201 without a body', takesEffect: true, reply: () => raw(201, '') },
  no_content: { words: 'did it, and answered 204', takesEffect: true, reply: () => raw(204, '') },
  huge: {
    words: 'did it, and answered without an end',
    takesEffect: true,
    reply: ({ id }) => json(201, { id, more: HUGE }),
  },
  redirect_302: {
    words: 'sent us elsewhere with 302, nothing done',
    takesEffect: false,
    reply: () => raw(302, '', { location: '/elsewhere' }),
  },
  redirect_307: {
    words: 'did it, and sent us elsewhere with 307',
    takesEffect: true,
    reply: () => raw(307, '', { location: '/elsewhere' }),
  },
  silent_nothing: { words: 'no answer in time, nothing done', takesEffect: false, reply: silence },
  silent_done: { words: 'did it, and no answer in time', takesEffect: true, reply: silence },
  reset_nothing: {
    words: 'the connection broke, nothing done',
    takesEffect: false,
    reply: () => ({ kind: 'reset', midBody: false }),
  },
  reset_done: {
    words: 'did it, and the connection broke before the answer',
    takesEffect: true,
    reply: () => ({ kind: 'reset', midBody: false }),
  },
  reset_mid_body: {
    words: 'did it, and the connection broke in the middle of the answer',
    takesEffect: true,
    reply: () => ({ kind: 'reset', midBody: true }),
  },
  no_connection: {
    words: 'nothing listened at its address',
    takesEffect: false,
    reply: () => ({ kind: 'no_connection' }),
  },
  event_first: {
    words: 'did it, and its event came before the answer',
    takesEffect: true,
    eventFirst: true,
    reply: created,
  },
  event_only: {
    words: 'did it, its event came, and no answer in time',
    takesEffect: true,
    eventFirst: true,
    reply: silence,
  },
} as const satisfies Record<string, CallFault>

export type CallFaultName = keyof typeof CALL_FAULTS

export const CALL_FAULT_NAMES = Object.keys(CALL_FAULTS) as CallFaultName[]

export function callFault(name: CallFaultName): CallFault {
  return CALL_FAULTS[name]
}
