/** Who wants to open a live stream, and how many are open in this process. */
export interface StreamFacts {
  /** Whether the account has an accepted sale: until then a stream has nothing to show. */
  isActive: boolean
  /** Of this account. */
  own: number
  /** Of accounts that are not active. */
  inactive: number
  /** Of all accounts. */
  open: number
}

export interface StreamLimits {
  all: number
  perUser: number
}

/** `own_limit`: the account has too many. `full`: there is no place for it in this process. */
export type StreamDecision = 'admitted' | 'own_limit' | 'full'

/**
 * Active accounts take any free place. Accounts without activity, which cost nothing to register, share half of the
 * places, so that they can never take the other half from those who follow their sales.
 */
export function admitStream(
  { isActive, own, inactive, open }: StreamFacts,
  limits: StreamLimits,
): StreamDecision {
  if (own >= limits.perUser) return 'own_limit'
  if (open >= limits.all) return 'full'
  return isActive || inactive < Math.ceil(limits.all / 2) ? 'admitted' : 'full'
}
