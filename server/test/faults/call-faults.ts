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

type More = Partial<Omit<CallFault, 'takesEffect' | 'reply'>>
const did = (reply: CallFault['reply'], more: More = {}): CallFault => ({ takesEffect: true, reply, ...more })
const none = (reply: CallFault['reply'], more: More = {}): CallFault => ({
  takesEffect: false,
  reply,
  ...more,
})

/** Each answer to a call: the processor `did` it, or did `none` of it. */
export const CALL_FAULTS = {
  ok: did(created),
  ok_200: did(({ id }) => json(200, { id })),
  refused_400: none(error(400), { means: 'refused' }),
  refused_422: none(error(422), { means: 'refused' }),
  too_early: none(error(425)),
  busy: none(error(429, { 'retry-after': `${BUSY_S}` }), BUSY),
  busy_until: none(({ now }) => json(429, {}, { 'retry-after': busyUntil(now) }), BUSY),
  slow_408: none(error(408)),
  in_use_409: did(error(409)),
  error_500: none(error(500)),
  error_500_done: did(error(500)),
  error_503: none(error(503, { 'retry-after': '30' }), { waitMs: 30_000 }),
  error_503_done: did(error(503)),
  malformed: did(() => raw(201, '{"id":"')),
  malformed_nothing: none(() => raw(201, '<html>')),
  wrong_shape: did(() => json(201, { ok: true })),
  unreadable_id: did(() => json(201, { id: ['a\u0000b'] })),
  unknown_id: did(({ id }) => json(201, { id: `${id}_not` }), { means: 'wrong_id' }),
  others_id: did(({ othersId }) => json(201, { id: othersId })),
  empty: did(() => raw(201)),
  no_content: did(() => raw(204)),
  huge: did(({ id }) => json(201, { id, more: HUGE })),
  redirect_302: none(elsewhere(302)),
  redirect_307: did(elsewhere(307)),
  silent_nothing: none(silence),
  silent_done: did(silence),
  reset_nothing: none(reset(false)),
  reset_done: did(reset(false)),
  reset_mid_body: did(reset(true)),
  no_connection: none(noConnection),
  event_first: did(created, { eventFirst: true }),
  event_only: did(silence, { eventFirst: true }),
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
  /** `nothing`: it says nothing of what the processor holds. `false`: it says something that is not so. */
  means: 'true' | 'nothing' | 'false'
  reply(items: HeldItem[]): Reply
  /** For how long after something was done it is answered like this, ms; without it for as long as the story says. */
  atMostMs?: number
}

/** Processors show what they have done a little later; one that never does cannot be asked at all. */
const LAGS_FOR_MS = 5 * 60_000
const STRANGER = {
  ...{ id: 'd_stranger', reference: 'not-asked-for' },
  ...{ amount: '1.00', currency: 'PKR', status: 'open' },
}

const list = (items: unknown) => raw(200, JSON.stringify({ items }))
const says = (
  reply: LookupFault['reply'],
  means: LookupFault['means'] = 'nothing',
  atMostMs?: number,
): LookupFault => ({ means, reply, ...(atMostMs !== undefined && { atMostMs }) })

export const LOOKUP_FAULTS = {
  fine: says(list, 'true'),
  error_503: says(() => raw(503)),
  not_found: says(() => raw(404, '{}')),
  malformed: says(() => raw(200, '{"items":[')),
  wrong_shape: says(() => raw(200, '{"items":[{"id":7}]}')),
  empty_body: says(() => raw(200)),
  unfiltered: says(() => list([STRANGER])),
  huge: says(() => list([HUGE])),
  redirect: says(elsewhere(302)),
  silence: says(silence),
  reset: says(reset(true)),
  no_connection: says(noConnection),
  lags: says(() => list([]), 'false', LAGS_FOR_MS),
  other_amount: says((items) => list(items.map((item) => ({ ...item, amount: '7.77' }))), 'false'),
} satisfies Record<string, LookupFault>

export type LookupFaultName = keyof typeof LOOKUP_FAULTS

export const LOOKUP_FAULT_NAMES = Object.keys(LOOKUP_FAULTS) as LookupFaultName[]
