/** Bytes that may be hashed within each second, by `performance.now()`. */
export class HashBudget {
  readonly #bytes: number
  #left = 0
  #until = 0

  constructor(bytesPerSecond: number) {
    this.#bytes = bytesPerSecond
  }

  /** Whether `bytes` more may be hashed in this second; counts them if so. */
  take(bytes: number): boolean {
    const now = performance.now()
    if (now >= this.#until) {
      this.#left = this.#bytes
      this.#until = now + 1000
    }
    if (this.#left < bytes) return false
    this.#left -= bytes
    return true
  }
}
