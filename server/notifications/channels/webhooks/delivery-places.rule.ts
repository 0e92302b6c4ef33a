/** How many deliveries a process holds, waiting or under way, beside one for each endpoint. */
export const PLACES = 1000

export interface PlaceOwner {
  endpointId: string
  accountId: string
  /** The last attempt at the endpoint failed: it gets one delivery at a time. */
  failing: boolean
}

/**
 * The places of a process's deliveries. An account may have half as many as are free, so some stay free however many accounts have slow
 * endpoints. An endpoint may have as many as its account has left, and always one.
 */
export class Places {
  #taken = 0
  /** By the id of an account or an endpoint. */
  readonly #takenBy: Map<string, number>

  constructor(from: Places | null = null) {
    this.#taken = from ? from.#taken : 0
    this.#takenBy = new Map(from ? from.#takenBy : [])
  }

  of(id: string): number {
    return this.#takenBy.get(id) ?? 0
  }

  /** Takes places; a negative number gives them back. */
  take({ accountId, endpointId }: PlaceOwner, places: number): void {
    this.#taken += places
    for (const id of [accountId, endpointId]) {
      const left = this.of(id) + places
      if (left === 0) this.#takenBy.delete(id)
      else this.#takenBy.set(id, left)
    }
  }

  hasRoom(owner: PlaceOwner): boolean {
    return this.of(owner.endpointId) < this.#mostOf(owner)
  }

  /** Whether the endpoint is left out of claims: it takes more once it is half empty, so that each claim brings many. */
  isFull(owner: PlaceOwner): boolean {
    return this.of(owner.endpointId) > Math.floor(this.#mostOf(owner) / 2)
  }

  #mostOf({ accountId, failing }: PlaceOwner): number {
    return failing ? 1 : Math.max(1, Math.floor((PLACES - this.#taken) / 2) - this.of(accountId))
  }
}
