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

const raw = (status: number, body = '', headers: Record<string, string> = {}): Reply => ({
  kind: 'send',
  status,
  body,
  headers,
})
const json = (status: number, body: unknown, headers: Record<string, string> = {}): Reply =>
  raw(status, JSON.stringify(body), { 'content-type': 'application/json', ...headers })
const error = (status: number, headers?: Record<string, string>) => () =>
  json(status, { message: `status ${status}` }, headers)
const elsewhere = (status: number) => () => raw(status, '', { location: '/elsewhere' })
const silence = (): Reply => ({ kind: 'silence' })
const reset = (midBody: boolean) => (): Reply => ({ kind: 'reset', midBody })
const noConnection = (): Reply => ({ kind: 'no_connection' })
const created = ({ id }: CallContext) => json(201, { id, hosted_url: `https://pay.example/${id}` })

/** Beyond what an answer may have. */
const HUGE = 'x'.repeat(MAX_ANSWER_BYTES)
const BUSY_S = 120
const BUSY = { waitMs: BUSY_S * 1000 }
const busyUntil = (now: number) => new Date(now + BUSY_S * 1000 + 999).toUTCString()

const fault =
  (takesEffect: boolean) =>
  (words: string, reply: CallFault['reply'], more: Partial<CallFault> = {}): CallFault => ({
    words,
    takesEffect,
    reply,
    ...more,
  })
const did = fault(true)
const none = fault(false)

export const CALL_FAULTS = {
  ok: did('answered 201', created),
  ok_200: did('answered 200 instead of 201', ({ id }) => json(200, { id })),
  refused_400: none('refused with 400', error(400), { means: 'refused' }),
  refused_422: none('refused with 422', error(422), { means: 'refused' }),
  too_early: none('answered 425, nothing done', error(425)),
  busy: none(
    'answered 429 with seconds to wait, nothing done',
    error(429, { 'retry-after': `${BUSY_S}` }),
    BUSY,
  ),
  busy_until: none(
    'answered 429 with a date to wait for, nothing done',
    ({ now }) => json(429, {}, { 'retry-after': busyUntil(now) }),
    BUSY,
  ),
  slow_408: none('answered 408, nothing done', error(408)),
  in_use_409: did('did it, and answered 409', error(409)),
  error_500: none('answered 500, nothing done', error(500)),
  error_500_done: did('did it, and answered 500', error(500)),
  error_503: none('answered 503 with a time to wait, nothing done', error(503, { 'retry-after': '30' }), {
    waitMs: 30_000,
  }),
  error_503_done: did('did it, and answered 503', error(503)),
  malformed: did('did it, and answered half of a JSON text', () => raw(201, '{"id":"')),
  malformed_nothing: none('answered 201 with no JSON, nothing done', () => raw(201, '<html>')),
  wrong_shape: did('did it, and answered without an id', () => json(201, { ok: true })),
  unreadable_id: did('did it, and answered an id that no id can be', () => json(201, { id: ['a\u0000b'] })),
  unknown_id: did(
    'did it, and answered an id that it does not know itself',
    ({ id }) => json(201, { id: `${id}_not` }),
    { means: 'wrong_id' },
  ),
  others_id: did("did it, and answered the id of another account's", ({ othersId }) =>
    json(201, { id: othersId }),
  ),
  empty: did('did it, and answered 201 without a body', () => raw(201)),
  no_content: did('did it, and answered 204', () => raw(204)),
  huge: did('did it, and answered without an end', ({ id }) => json(201, { id, more: HUGE })),
  redirect_302: none('sent us elsewhere with 302, nothing done', elsewhere(302)),
  redirect_307: did('did it, and sent us elsewhere with 307', elsewhere(307)),
  silent_nothing: none('no answer in time, nothing done', silence),
  silent_done: did('did it, and no answer in time', silence),
  reset_nothing: none('the connection broke, nothing done', reset(false)),
  reset_done: did('did it, and the connection broke before the answer', reset(false)),
  reset_mid_body: did('did it, and the connection broke in the middle of the answer', reset(true)),
  no_connection: none('nothing listened at its address', noConnection),
  event_first: did('did it, and its event came before the answer', created, { eventFirst: true }),
  event_only: did('did it, its event came, and no answer in time', silence, { eventFirst: true }),
} satisfies Record<string, CallFault>

export type CallFaultName = keyof typeof CALL_FAULTS

export const CALL_FAULT_NAMES = Object.keys(CALL_FAULTS) as CallFaultName[]

/** One thing that the processor holds, as its look-up answers it. */
export interface HeldItem {
  id: string
  reference: string
  amount: string
  currency: string
  status: string
}

export interface LookupFault {
  words: string
  /** `nothing`: it says nothing of what the processor holds. `false`: it says something that is not so. */
  means: 'true' | 'nothing' | 'false'
  reply(items: HeldItem[]): Reply
  /** For how long after something was done it is answered like this, ms; without it for as long as the story says. */
  atMostMs?: number
}

/** Processors show what they have done a little later; one that never does cannot be asked at all. */
const LAGS_FOR_MS = 5 * 60_000
const STRANGER = {
  id: 'd_stranger',
  reference: 'not-asked-for',
  amount: '1.00',
  currency: 'PKR',
  status: 'open',
}

const list = (items: unknown) => raw(200, JSON.stringify({ items }))
const says = (
  words: string,
  reply: LookupFault['reply'],
  means: LookupFault['means'] = 'nothing',
): LookupFault => ({ words: `the look-up ${words}`, means, reply })

export const LOOKUP_FAULTS = {
  fine: says('was right', list, 'true'),
  error_503: says('answered 503', () => raw(503)),
  not_found: says('answered 404', () => raw(404, '{}')),
  malformed: says('answered no JSON', () => raw(200, '{"items":[')),
  wrong_shape: says('answered another shape', () => raw(200, '{"items":[{"id":7}]}')),
  empty_body: says('answered nothing at all', () => raw(200)),
  unfiltered: says('answered other references', () => list([STRANGER])),
  huge: says('answered without an end', () => list([HUGE])),
  redirect: says('sent us elsewhere', elsewhere(302)),
  silence: says('got no answer in time', silence),
  reset: says('lost its connection', reset(true)),
  no_connection: says('found nothing that listened', noConnection),
  lags: { ...says('knew nothing of it yet', () => list([]), 'false'), atMostMs: LAGS_FOR_MS },
  other_amount: says(
    'answered another amount',
    (items) => list(items.map((item) => ({ ...item, amount: '7.77' }))),
    'false',
  ),
} satisfies Record<string, LookupFault>

export type LookupFaultName = keyof typeof LOOKUP_FAULTS

export const LOOKUP_FAULT_NAMES = Object.keys(LOOKUP_FAULTS) as LookupFaultName[]
