import { HUGE, type Reply } from './call-faults.ts'

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

const list = (items: unknown): Reply => ({ kind: 'send', status: 200, body: JSON.stringify({ items }) })
const raw = (status: number, body: string, headers: Record<string, string> = {}): Reply => ({
  kind: 'send',
  status,
  body,
  headers,
})
const STRANGER: HeldItem = {
  id: 'd_stranger',
  reference: 'not-asked-for',
  amount: '1.00',
  currency: 'PKR',
  status: 'open',
}

export const LOOKUP_FAULTS = {
  fine: { words: 'the look-up was right', means: 'true', reply: list },
  error_503: { words: 'the look-up answered 503', means: 'nothing', reply: () => raw(503, '') },
  not_found: { words: 'the look-up answered 404', means: 'nothing', reply: () => raw(404, '{}') },
  malformed: { words: 'the look-up answered no JSON', means: 'nothing', reply: () => raw(200, '{"items":[') },
  wrong_shape: {
    words: 'the look-up answered another shape',
    means: 'nothing',
    reply: () => raw(200, '{"items":[{"id":7}]}'),
  },
  empty_body: { words: 'the look-up answered nothing at all', means: 'nothing', reply: () => raw(200, '') },
  unfiltered: {
    words: 'the look-up answered other references',
    means: 'nothing',
    reply: () => list([STRANGER]),
  },
  huge: { words: 'the look-up answered without an end', means: 'nothing', reply: () => list([HUGE]) },
  redirect: {
    words: 'the look-up sent us elsewhere',
    means: 'nothing',
    reply: () => raw(302, '', { location: '/elsewhere' }),
  },
  silence: {
    words: 'the look-up got no answer in time',
    means: 'nothing',
    reply: () => ({ kind: 'silence' }),
  },
  reset: {
    words: 'the connection of the look-up broke',
    means: 'nothing',
    reply: () => ({ kind: 'reset', midBody: true }),
  },
  no_connection: {
    words: 'nothing listened at the look-up',
    means: 'nothing',
    reply: () => ({ kind: 'no_connection' }),
  },
  lags: {
    words: 'the look-up knew nothing of it yet',
    means: 'false',
    atMostMs: LAGS_FOR_MS,
    reply: () => list([]),
  },
  other_amount: {
    words: 'the look-up answered another amount',
    means: 'false',
    reply: (items) => list(items.map((item) => ({ ...item, amount: '7.77' }))),
  },
} as const satisfies Record<string, LookupFault>

export type LookupFaultName = keyof typeof LOOKUP_FAULTS

export const LOOKUP_FAULT_NAMES = Object.keys(LOOKUP_FAULTS) as LookupFaultName[]

export function lookupFault(name: LookupFaultName): LookupFault {
  return LOOKUP_FAULTS[name]
}
