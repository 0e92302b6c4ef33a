import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { Refusal } from '../../platform/api/refusal.ts'

type Done = (error: Error | null, body?: Buffer) => void

/** Checks a request by its headers, before its body is read. Throws the refusal. */
export type CheckHead = (request: FastifyRequest) => void | Promise<void>

export interface RawBodyOptions {
  /** Bytes of one body. */
  limit: number
  checkHead?: CheckHead
  /** Limits all bodies that are being read; 64 MiB and 10 s by default. */
  inFlight?: BodiesInFlight
}

const IN_FLIGHT = { maxBytes: 64 * 1024 * 1024, deadlineMs: 10_000 }
/**
 * The body of a refused request up to this size is read and dropped, so that the sender gets the response. A larger one ends
 * the connection.
 */
const MAX_DROPPED_BYTES = 64 * 1024

/** A content-type parser that returns the raw body. Unlike Fastify's own, it does not copy a body that came in one chunk. */
export function rawBodyUpTo({
  limit,
  checkHead,
  inFlight = new BodiesInFlight(IN_FLIGHT),
}: RawBodyOptions): (request: FastifyRequest, payload: IncomingMessage, done: Done) => void {
  return (request, payload, done) => {
    const announced = Number(request.headers['content-length'])
    if (announced > limit) return done(tooLarge())
    const refuse = (error: unknown) => {
      const refusal = error instanceof Error ? error : new Error(String(error))
      if (announced <= MAX_DROPPED_BYTES) readAll(payload, limit, inFlight, () => done(refusal), false)
      else done(refusal)
    }
    const read = () => readAll(payload, limit, inFlight, done)
    try {
      const checked = checkHead?.(request)
      if (checked) checked.then(read, refuse)
      else read()
    } catch (error) {
      refuse(error)
    }
  }
}

function readAll(
  payload: IncomingMessage,
  limit: number,
  inFlight: BodiesInFlight,
  done: Done,
  kept = true,
): void {
  let chunks: Buffer[] = []
  let size = 0
  const end = (error: Error | null) => {
    payload.off('data', onData).off('end', onEnd).off('error', onError)
    inFlight.end(body)
    const all = chunks
    chunks = []
    if (error) done(error)
    else done(null, all.length === 1 ? all[0] : Buffer.concat(all, kept ? size : 0))
  }
  const body: BodyInFlight = { fail: end }
  const onData = (chunk: Buffer) => {
    size += chunk.length
    if (size > limit) return end(tooLarge())
    if (!kept) return
    chunks.push(chunk)
    inFlight.grow(body, chunk.length)
  }
  const onEnd = () => end(null)
  const onError = () =>
    end(new Refusal('validation_failed', 'The connection closed before the body was complete.'))
  inFlight.begin(body)
  payload.on('data', onData).on('end', onEnd).on('error', onError).resume()
}

/** A body that is being read. `fail` stops reading and frees its chunks. */
export interface BodyInFlight {
  fail(error: Refusal): void
}

/** Memory of a chunk besides its bytes. */
const CHUNK_OVERHEAD = 200

interface Reading {
  bytes: number
  /** By `performance.now()`. */
  deadline: number
}

/**
 * Limits the memory and the time of the bodies that are being read, over all connections. Above `maxBytes` the oldest body
 * fails: bodies arrive within milliseconds, so the oldest one is a stalled one.
 */
export class BodiesInFlight {
  readonly #maxBytes: number
  readonly #deadlineMs: number
  /** Oldest first. */
  readonly #readings = new Map<BodyInFlight, Reading>()
  #bytes = 0
  #timer: NodeJS.Timeout | null = null

  constructor(options: { maxBytes: number; deadlineMs: number }) {
    this.#maxBytes = options.maxBytes
    this.#deadlineMs = options.deadlineMs
  }

  begin(body: BodyInFlight): void {
    this.#readings.set(body, { bytes: 0, deadline: performance.now() + this.#deadlineMs })
    this.#timer ??= setInterval(() => this.#failLate(), this.#deadlineMs / 4).unref()
  }

  /** Counts a chunk of `bytes`. */
  grow(body: BodyInFlight, bytes: number): void {
    const reading = this.#readings.get(body)
    if (!reading) return
    reading.bytes += bytes + CHUNK_OVERHEAD
    this.#bytes += bytes + CHUNK_OVERHEAD
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

  #failLate(): void {
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

function tooLarge(): Refusal {
  return new Refusal('payload_too_large', 'The body is too large.')
}

function tooMany(): Refusal {
  return new Refusal('unavailable', 'Too many requests are being received. Try again shortly.', {
    retryAfter: 1,
    internalDetail: 'bodies in flight exceed the memory limit',
  })
}

function tooSlow(): Refusal {
  return new Refusal('validation_failed', 'The body did not arrive in time. Send it again.')
}
