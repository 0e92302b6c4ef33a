import { fc, oftener } from '../testkit/property.ts'
import {
  CALL_FAULT_NAMES,
  type CallFaultName,
  type CallKind,
  LOOKUP_FAULT_NAMES,
  type LookupFaultName,
} from './call-faults.ts'
import type { Behaviour } from './processor-double.ts'

/** What the processor's money did in the end. */
export type Word = 'paid' | 'failed'

/** How the processor's events come. */
export const DELIVERIES = ['once', 'twice', 'with_another_amount', 'contradicting'] as const
export type Delivery = (typeof DELIVERIES)[number]

/** One subject of a call, an invoice or a payout, and what happens to it. */
export interface Story extends Behaviour {
  kind: CallKind
  word: Word
  delivery: Delivery
}

/** How long until the worker's next go, and whether it dies in it, after its exchange and before it can record it. */
export interface Round {
  wait: 'due' | 'minute' | 'hour' | 'day'
  dies: boolean
}

/** How many stories happen side by side on an average. */
export const STORIES_AT_ONCE = 3

const anyEvents = {
  word: fc.constantFrom<Word[]>('paid', 'failed'),
  delivery: oftener<Delivery>([6, 'once'], ...DELIVERIES.map((one) => [1, one] as const)),
  calls: fc.array(fc.constantFrom<CallFaultName[]>(...CALL_FAULT_NAMES), { maxLength: 5 }),
  lookups: fc.array(fc.constantFrom<LookupFaultName[]>(...LOOKUP_FAULT_NAMES), { maxLength: 5 }),
}
const storiesOf = (kind: CallKind) =>
  fc.array(fc.record({ kind: fc.constant(kind), ...anyEvents }), {
    minLength: 1,
    maxLength: 2 * STORIES_AT_ONCE - 1,
    size: 'max',
  })

/** Any stories of one kind that share their rounds, shrinking towards one story, fewer faults, fewer rounds and no deaths. */
export const anyStories = fc.record({
  stories: fc.oneof(storiesOf('invoice'), storiesOf('payout')),
  rounds: fc.array(
    fc.record({
      wait: fc.constantFrom<Round['wait'][]>('due', 'minute', 'hour', 'day'),
      dies: oftener<boolean>([4, false], [1, true]),
    }),
    { maxLength: 8 },
  ),
})
