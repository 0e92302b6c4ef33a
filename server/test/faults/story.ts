import { fc } from '../testkit/property.ts'
import {
  CALL_FAULT_NAMES,
  CALL_FAULTS,
  type CallFaultName,
  type CallKind,
  LOOKUP_FAULT_NAMES,
  LOOKUP_FAULTS,
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

const WAITS = {
  due: 'as soon as it was due',
  minute: 'a minute later',
  hour: 'an hour later',
  day: 'a day later',
}

const DELIVERY_WORDS: Record<Delivery, string> = {
  once: 'it sent its event once',
  twice: 'it sent its event twice, under two delivery ids',
  with_another_amount: 'it sent its event with another amount first',
  contradicting: 'it sent an event that contradicts the first as well',
}

/** A story as a person would tell it, one line a step. */
export function inWords(story: Story, rounds: readonly Round[]): string {
  const { kind, word, delivery, calls, callsEndAs, lookups, lookupsEndAs } = story
  return [
    `One ${kind} was to be made.`,
    ...calls.map((name, index) => `  call ${index + 1}: the processor ${wordsOf(CALL_FAULTS[name].words)}`),
    `  ${calls.length === 0 ? 'every call' : 'later calls'}: the processor ${wordsOf(CALL_FAULTS[callsEndAs ?? 'ok'].words)}`,
    ...lookups.map((name, index) => `  look-up ${index + 1}: ${LOOKUP_FAULTS[name].words}`),
    ...(lookupsEndAs ? [`  every later look-up: ${LOOKUP_FAULTS[lookupsEndAs].words}`] : []),
    ...rounds.map(
      ({ wait, dies }, index) =>
        `  try ${index + 1} came ${index === 0 ? 'at once' : WAITS[wait]}${dies ? ', and the worker died before it recorded anything' : ''}`,
    ),
    `  in the end ${kind === 'payout' && word === 'failed' ? 'the payout failed' : 'it was paid'}; ${DELIVERY_WORDS[delivery]}.`,
  ].join('\n')
}

/** "did it, and …" fits after its subject; what begins otherwise is said beside it. */
function wordsOf(words: string): string {
  return /^(did|answered|refused|sent)/.test(words) ? words : `was called: ${words}`
}

export interface RandomStory {
  story: Story
  rounds: Round[]
}

/** Any story, shrinking towards fewer faults, fewer rounds and no deaths. */
export const anyStory: fc.Arbitrary<RandomStory> = fc.record({
  story: fc.record({
    kind: fc.constantFrom<CallKind[]>('invoice', 'payout'),
    word: fc.constantFrom<Word[]>('paid', 'failed'),
    delivery: fc.oneof(
      { weight: 3, arbitrary: fc.constant<Delivery>('once') },
      { weight: 2, arbitrary: fc.constantFrom(...DELIVERIES) },
    ),
    calls: fc.array(fc.constantFrom<CallFaultName[]>(...CALL_FAULT_NAMES), { maxLength: 5 }),
    lookups: fc.array(fc.constantFrom<LookupFaultName[]>(...LOOKUP_FAULT_NAMES), { maxLength: 5 }),
  }),
  rounds: fc.array(
    fc.record({
      wait: fc.constantFrom<Round['wait'][]>('due', 'minute', 'hour', 'day'),
      dies: fc.oneof(
        { weight: 4, arbitrary: fc.constant(false) },
        { weight: 1, arbitrary: fc.constant(true) },
      ),
    }),
    { maxLength: 8 },
  ),
})
