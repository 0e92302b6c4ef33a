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
  | { kind: 'moved'; to: OfferStatus }
  | { kind: 'unchanged' }
  | { kind: 'refused'; code: 'illegal_transition' | 'conflict' | 'vetting_required'; detail: string }

/**
 * Decides a merchant's change of an offer's status; the present status is `unchanged`. Going live has the same conditions from `draft`
 * and from `paused`, because rate and stores may have changed meanwhile. Refuses, in this order: `illegal_transition`, `conflict` (no store), `vetting_required`.
 */
export function decideOfferMove(facts: OfferMoveFacts): OfferMove {
  const { from, to } = facts
  if (from === to) return { kind: 'unchanged' }
  if (!MOVES[from].includes(to)) {
    return {
      kind: 'refused',
      code: 'illegal_transition',
      detail: `An offer that is ${from} cannot become ${to}; ${movesFrom(from)}.`,
    }
  }
  if (to !== 'live') return { kind: 'moved', to }
  if (!facts.merchantHasStore) {
    return { kind: 'refused', code: 'conflict', detail: 'Connect a store before an offer goes live.' }
  }
  if (!vettingPermits(facts.vetting)) {
    return {
      kind: 'refused',
      code: 'vetting_required',
      detail:
        facts.vetting === 'rejected'
          ? 'An admin rejected this offer; its vetting_reason says why.'
          : 'This commission rate needs an approved vetting before the offer goes live.',
    }
  }
  return { kind: 'moved', to }
}

function movesFrom(from: OfferStatus): string {
  const moves = MOVES[from]
  return moves.length === 0 ? 'it cannot change' : `it can become ${moves.join(' or ')}`
}
