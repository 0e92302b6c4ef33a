import type { z } from 'zod'
import type { offerStatus } from '../../shared/schemas/offers.ts'
import { type VettingState, vettingPermits } from './vetting.rule.ts'

export type OfferStatus = z.infer<typeof offerStatus>

/** All allowed transitions. A draft cannot end, and `ended` is final. */
const MOVES: Readonly<Record<OfferStatus, readonly OfferStatus[]>> = {
  draft: ['live'],
  live: ['paused', 'ended'],
  paused: ['live', 'ended'],
  ended: [],
}

export interface OfferMoveFacts {
  from: OfferStatus
  to: OfferStatus
  /** Whether the merchant has a connected store: without one no sale could be reported. */
  merchantHasStore: boolean
  /** The vetting of the offer's present rate. */
  vetting: VettingState
}

export type OfferMove =
  | { kind: 'moved' | 'unchanged' }
  | Refused<'illegal_transition' | 'conflict' | 'vetting_required'>

export interface Refused<Code> {
  kind: 'refused'
  code: Code
  detail: string
}

export function refused<const Code>(code: Code, detail: string): Refused<Code> {
  return { kind: 'refused', code, detail }
}

/**
 * Decides a merchant's change of an offer's status; the present status is `unchanged`. Going live has the same conditions from `draft`
 * and from `paused`, because rate and stores may have changed meanwhile. Refuses, in this order: `illegal_transition`, `conflict` (no store), `vetting_required`.
 */
export function decideOfferMove(facts: OfferMoveFacts): OfferMove {
  const { from, to } = facts
  if (from === to) return { kind: 'unchanged' }
  if (!MOVES[from].includes(to)) {
    const detail = `An offer that is ${from} cannot become ${to}; ${movesFrom(from)}.`
    return refused('illegal_transition', detail)
  }
  if (to !== 'live') return { kind: 'moved' }
  if (!facts.merchantHasStore) return refused('conflict', 'Connect a store before an offer goes live.')
  if (vettingPermits(facts.vetting)) return { kind: 'moved' }
  const detail =
    facts.vetting === 'rejected'
      ? 'An admin rejected this offer; its vetting_reason says why.'
      : 'This commission rate needs an approved vetting before the offer goes live.'
  return refused('vetting_required', detail)
}

function movesFrom(from: OfferStatus): string {
  const moves = MOVES[from]
  return moves.length === 0 ? 'it cannot change' : `it can become ${moves.join(' or ')}`
}
