import { EventEmitter } from 'node:events'

/**
 * Publishes hints within this process; the composition root passes those of shared topics on to other processes where it can. Subscribers
 * also poll, because a hint may be lost.
 */
export class Topics {
  readonly #listeners = new EventEmitter().setMaxListeners(0)
  #publish: ((topic: string) => void) | null = null

  /** Calls `listener` for each hint about `topic`; the returned function unsubscribes. */
  on(topic: string, listener: () => void): () => void {
    this.#listeners.on(topic, listener)
    return () => void this.#listeners.off(topic, listener)
  }

  send(topic: string): void {
    this.deliver(topic)
    this.#publish?.(topic)
  }

  /** As `send`, in this process only. */
  deliver(topic: string): void {
    this.#listeners.emit(topic)
  }

  /** Calls `publish` with the topic of each `send`. */
  onSend(publish: (topic: string) => void): void {
    this.#publish = publish
  }
}

const USER_TOPIC = 'news of '

/** The topic for changes of one user's sales, payouts, billing cycles and sessions. */
export function userTopic(userId: string): string {
  return USER_TOPIC + userId
}

/** The topic for events that wait in the inbox. */
export const INBOX_TOPIC = 'inbox'

/** Whether other processes need the signals of this topic: a worker may be in another process than the web server. */
export function isShared(topic: string): boolean {
  return topic === INBOX_TOPIC || topic.startsWith(USER_TOPIC)
}
