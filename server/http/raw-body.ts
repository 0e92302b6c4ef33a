import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { Refusal } from '../platform/refusal.ts'
import { BodiesInFlight, type BodyInFlight } from './bodies-in-flight.ts'

type Done = (error: Error | null, body?: Buffer) => void

/** Checks a request by its head, before its body is read. Throws the refusal. */
export type CheckHead = (request: FastifyRequest) => void | Promise<void>

export interface RawBodyOptions {
  /** Bytes of one body. */
  limit: number
  checkHead?: CheckHead
  /** Bounds memory and time of all bodies that are being read; 64 MiB and 10 s unless given. */
  inFlight?: BodiesInFlight
}

const IN_FLIGHT = { maxBytes: 64 * 1024 * 1024, deadlineMs: 10_000 }
/** The body of a refused request up to this size is received and dropped, so that its sender reads the answer. Larger ones end the connection. */
const DROPPED_UP_TO = 64 * 1024

/**
 * A parser for bodies that are taken as they come. The framework's own copies them all, also such as came in one piece: at thousands of
 * kilobytes a second that is much work for the collector.
 */
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
      if (announced <= DROPPED_UP_TO) readAll(payload, limit, inFlight, () => done(refusal), false)
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
  let pieces: Buffer[] = []
  let size = 0
  const end = (error: Error | null) => {
    payload.off('data', onData).off('end', onEnd).off('error', onError)
    inFlight.end(body)
    const all = pieces
    pieces = []
    // What still comes is read and forgotten: the framework ends the connection behind its answer.
    if (error) done(error)
    else done(null, all.length === 1 ? all[0] : Buffer.concat(all, kept ? size : 0))
  }
  const body: BodyInFlight = { fail: end }
  const onData = (piece: Buffer) => {
    size += piece.length
    if (size > limit) return end(tooLarge())
    if (!kept) return
    pieces.push(piece)
    inFlight.grow(body, piece.length)
  }
  const onEnd = () => end(null)
  const onError = () => end(new Refusal('validation_failed', 'The request broke off before its end.'))
  inFlight.begin(body)
  payload.on('data', onData).on('end', onEnd).on('error', onError).resume()
}

/**
 * Frees the memory of a body as soon as it is not needed; the body is empty then. Left to the collector, some megabytes of bodies have it go
 * through the whole heap, a dozen milliseconds each time. A body that shares its memory with something else is left alone.
 */
export function releaseBody(body: Buffer): void {
  if (body.buffer.byteLength === body.length && body.buffer instanceof ArrayBuffer) body.buffer.transfer(0)
}

function tooLarge(): Refusal {
  return new Refusal('payload_too_large', 'The body is too large.')
}
