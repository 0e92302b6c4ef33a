import {
  CALL_FAULT_NAMES,
  CALL_FAULTS,
  type CallFaultName,
  type CallKind,
  LOOKUP_FAULT_NAMES,
  type LookupFaultName,
} from './call-faults.ts'
import type { Ending } from './judge.ts'
import type { Round, Story } from './story.ts'

/** What comes after the first answer. */
interface Sequel {
  rounds: Round[]
  lookups: LookupFaultName[]
  lookupsEndAs?: LookupFaultName
  /** How every call after the first ends; without it they succeed. */
  callsEndAs?: CallFaultName
}

const LIVES: Round = { wait: 'due', dies: false }
const DIES: Round = { wait: 'due', dies: true }

export const SEQUELS = {
  'tried again at once': { rounds: [], lookups: [] },
  'tried again after a day': { rounds: [LIVES, { wait: 'day', dies: false }], lookups: [] },
  'the worker died between call and record': { rounds: [DIES], lookups: [] },
  'the look-up failed twice': { rounds: [], lookups: ['error_503', 'silence'] },
  'no look-up ever worked': { rounds: [], lookups: [], lookupsEndAs: 'reset' },
  'later calls were refused, and the look-up lagged': {
    rounds: [],
    lookups: ['lags', 'lags'],
    callsEndAs: 'refused_400',
  },
  'two workers died, and the look-up failed': { rounds: [DIES, LIVES, DIES], lookups: ['no_connection'] },
} satisfies Record<string, Sequel>

export type SequelName = keyof typeof SEQUELS

/** One cell of the table. */
export interface Cell {
  name: string
  story: Story
  ends: Ending
}

/** Every fault of a call with one sequel. */
export function cellsOf(name: SequelName, kind: CallKind): Cell[] {
  const sequel: Sequel = SEQUELS[name]
  return CALL_FAULT_NAMES.map((fault, index) => ({
    name: `${kind}: ${fault}`,
    // Every second payout fails in the end.
    story: {
      ...{ kind, calls: [fault], lookups: [...sequel.lookups] },
      // A refusal repeats on every call.
      callsEndAs: CALL_FAULTS[fault].means === 'refused' ? fault : sequel.callsEndAs,
      lookupsEndAs: sequel.lookupsEndAs,
      word: index % 2 === 0 ? 'paid' : 'failed',
      delivery: 'once',
    },
    ends: endingOf(fault, sequel),
  }))
}

/** An answer that was lost counts as none. */
function endingOf(fault: CallFaultName, { rounds, lookupsEndAs, callsEndAs }: Sequel): Ending {
  const { means, takesEffect } = CALL_FAULTS[fault]
  if (means === 'refused') return 'refused'
  if (means === 'wrong_id') return rounds.every(({ dies }) => !dies) ? 'flagged' : 'settled'
  const answered = ['ok', 'ok_200', 'event_first'].includes(fault)
  if (lookupsEndAs && !answered) return 'flagged'
  return callsEndAs && !takesEffect ? 'refused' : 'settled'
}

/** Every fault of a look-up, three times over, after a call that may or may not have taken effect. */
export function lookupCells(kind: CallKind): Cell[] {
  return (['silent_done', 'silent_nothing'] as const).flatMap((call) =>
    LOOKUP_FAULT_NAMES.map((fault) => ({
      name: `${kind}: ${call}, ${fault}`,
      story: { kind, calls: [call], lookups: [fault, fault, fault], word: 'paid', delivery: 'once' } as const,
      ends: 'settled' as const,
    })),
  )
}
