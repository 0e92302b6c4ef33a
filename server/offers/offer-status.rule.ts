import { type VettingState, vettingPermits } from './vetting.rule.ts'

export const OFFER_STATUSES = ['draft', 'live', 'paused', 'ended'] as const

export type OfferStatus = (typeof OFFER_STATUSES)[number]

/** Every move there is. Ending is for offers that were live once, and final: links and their terms refer to it. */
const MOVES: Readonly<Record<OfferStatus, readonly OfferStatus[]>> = {
  draft: ['live'],
  live: ['paused', 'ended'],
  paused: ['live', 'ended'],
  ended: [],
}

export interface OfferMoveFacts {
  from: OfferStatus
  to: OfferStatus
  /** Whether the merchant has a connected store: without one no sale could ever be reported. */
  merchantHasStore: boolean
  /** The vetting of the offer's present rate. */
  vetting: VettingState
}

export type OfferMove =
  | { kind: 'moved'; to: OfferStatus }
  | { kind: 'unchanged' }
  | { kind: 'refused'; code: 'illegal_transition' | 'conflict' | 'vetting_required'; detail: string }

/**
 * Decides a merchant's change of an offer's status. The status that the offer already has is `unchanged`.
 * The conditions of going live hold on the way from `draft` and from `paused`: the rate or the stores may have
 * changed during a pause. Refuses, in this order: `illegal_transition`, `conflict` (no store), `vetting_required`.
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
  return moves.length === 0 ? 'it stays as it is' : `it can become ${moves.join(' or ')}`
}
