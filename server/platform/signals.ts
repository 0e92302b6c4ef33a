/**
 * Tells other parts of this process that there is something new; a hint only. Whoever waits also looks by itself now
 * and then, since the news may have come from another process.
 */
export class Signals {
  readonly #listeners = new Map<string, Set<() => void>>()

  /** Calls `listener` at each `topic` until the answered function is called. */
  on(topic: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set()
    this.#listeners.set(topic, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      // Topics can be as many as there are users.
      if (listeners.size === 0 && this.#listeners.get(topic) === listeners) this.#listeners.delete(topic)
    }
  }

  send(topic: string): void {
    // A copy: a listener that waits anew at once is meant for the next news.
    for (const listener of [...(this.#listeners.get(topic) ?? [])]) listener()
  }
}

/** The topic of news about one user's own sales, payouts and billing cycles. */
export function newsOf(userId: string): string {
  return `news of ${userId}`
}
