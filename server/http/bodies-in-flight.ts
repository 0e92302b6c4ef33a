import { Refusal } from '../platform/refusal.ts'

/** A body that is being read. `fail` ends that and frees what has come so far. */
export interface BodyInFlight {
  fail(error: Refusal): void
}

/** What a piece of a body takes besides its bytes. */
const PIECE_OVERHEAD = 200

interface Reading {
  bytes: number
  /** By performance.now(). */
  deadline: number
}

/**
 * Bounds the memory and the time of bodies that are being read, over all connections. Past `maxBytes` the body that began first is
 * given up: an honest sender's arrives within milliseconds, so only bodies that stall are ever the oldest for long.
 */
export class BodiesInFlight {
  readonly #maxBytes: number
  readonly #deadlineMs: number
  /** In the order in which they began. */
  readonly #readings = new Map<BodyInFlight, Reading>()
  #bytes = 0
  #timer: NodeJS.Timeout | null = null

  constructor(options: { maxBytes: number; deadlineMs: number }) {
    this.#maxBytes = options.maxBytes
    this.#deadlineMs = options.deadlineMs
  }

  begin(body: BodyInFlight): void {
    this.#readings.set(body, { bytes: 0, deadline: performance.now() + this.#deadlineMs })
    this.#timer ??= setInterval(() => this.#endLate(), this.#deadlineMs / 4).unref()
  }

  /** A piece of `bytes` has come and is kept. */
  grow(body: BodyInFlight, bytes: number): void {
    const reading = this.#readings.get(body)
    if (!reading) return
    reading.bytes += bytes + PIECE_OVERHEAD
    this.#bytes += bytes + PIECE_OVERHEAD
    while (this.#bytes > this.#maxBytes) {
      const [oldest] = this.#readings.keys()
      if (!oldest) return
      this.#fail(oldest, tooMany())
    }
  }

  end(body: BodyInFlight): void {
    const reading = this.#readings.get(body)
    if (!reading) return
    this.#bytes -= reading.bytes
    this.#readings.delete(body)
  }

  #fail(body: BodyInFlight, error: Refusal): void {
    this.end(body)
    body.fail(error)
  }

  #endLate(): void {
    const now = performance.now()
    for (const [body, { deadline }] of this.#readings) {
      if (deadline > now) break
      this.#fail(body, tooSlow())
    }
    if (this.#readings.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }
}

function tooMany(): Refusal {
  return new Refusal('unavailable', 'Too many requests are being received. Try again shortly.', {
    retryAfter: 1,
    internalDetail: 'bodies in flight take too much memory',
  })
}

function tooSlow(): Refusal {
  return new Refusal('validation_failed', 'The body did not arrive in time. Send it again.')
}
