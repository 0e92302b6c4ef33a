type Pairs<Value> = Map<string, Map<string, Value>>

/**
 * What is known of pairs of words, for as many of them as were asked for last: at least `room`, at most twice as many. By the one word
 * and then by the other: to put both together for each look costs several times as much as the look. It takes no memory before there are any.
 */
export class RecentPairs<Value extends {}> {
  readonly #room: number
  #present: Pairs<Value> = new Map()
  /** Those of before the present ones; they go when the present ones are too many. */
  #former: Pairs<Value> = new Map()
  #size = 0

  constructor(room: number) {
    this.#room = room
  }

  get(one: string, other: string): Value | undefined {
    const present = this.#present.get(one)?.get(other)
    if (present !== undefined) return present
    const former = this.#former.get(one)?.get(other)
    if (former !== undefined) this.set(one, other, former)
    return former
  }

  set(one: string, other: string, value: Value): void {
    if (this.#size >= this.#room) this.#makeRoom()
    const others = this.#present.get(one) ?? new Map<string, Value>()
    const before = others.size
    others.set(other, value)
    if (before === 0) this.#present.set(one, others)
    this.#size += others.size - before
  }

  delete(one: string, other: string): void {
    if (this.#present.get(one)?.delete(other)) this.#size -= 1
    this.#former.get(one)?.delete(other)
  }

  #makeRoom(): void {
    this.#former = this.#present
    this.#present = new Map()
    this.#size = 0
  }
}
