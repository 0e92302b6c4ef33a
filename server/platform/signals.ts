/** Publishes hints within this process. Subscribers also poll, because a change may come from another process. */
export class Signals {
  readonly #listeners = new Map<string, Set<() => void>>()

  /** Calls `listener` for each signal of `topic`; the returned function unsubscribes. */
  on(topic: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set()
    this.#listeners.set(topic, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(topic) === listeners) this.#listeners.delete(topic)
    }
  }

  send(topic: string): void {
    // A copy: a listener that subscribes again during the call waits for the next signal.
    for (const listener of [...(this.#listeners.get(topic) ?? [])]) listener()
  }
}

/** The topic for changes of one user's sales, payouts and billing cycles. */
export function userTopic(userId: string): string {
  return `news of ${userId}`
}
