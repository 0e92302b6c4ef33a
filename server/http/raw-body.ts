import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { Refusal } from '../platform/refusal.ts'

type Done = (error: Error | null, body?: Buffer) => void

/**
 * A parser for bodies that are taken as they come. The framework's own copies them all, also such as came in one piece: at thousands of
 * kilobytes a second that is much work for the collector.
 */
export function rawBodyUpTo(
  limit: number,
): (request: FastifyRequest, payload: IncomingMessage, done: Done) => void {
  return (request, payload, done) => {
    if (Number(request.headers['content-length']) > limit) done(tooLarge())
    else readAll(payload, limit, done)
  }
}

function readAll(payload: IncomingMessage, limit: number, done: Done): void {
  const pieces: Buffer[] = []
  let size = 0
  const end = (error: Error | null) => {
    payload.off('data', onData).off('end', onEnd).off('error', onError)
    // What still comes is read and forgotten: the framework ends the connection behind its answer.
    if (error) done(error)
    else done(null, pieces.length === 1 ? pieces[0] : Buffer.concat(pieces, size))
  }
  const onData = (piece: Buffer) => {
    size += piece.length
    if (size > limit) end(tooLarge())
    else pieces.push(piece)
  }
  const onEnd = () => end(null)
  const onError = () => end(new Refusal('validation_failed', 'The request broke off before its end.'))
  payload.on('data', onData).on('end', onEnd).on('error', onError).resume()
}

/**
 * Gives the memory of a body back at once when nobody needs it any more; the body is empty then. Left to the collector, some megabytes of
 * bodies have it go through the whole heap, a dozen milliseconds each time. A body that shares its memory with something else is left alone.
 */
export function giveBack(body: Buffer): void {
  if (body.buffer.byteLength === body.length && body.buffer instanceof ArrayBuffer) body.buffer.transfer(0)
}

function tooLarge(): Refusal {
  return new Refusal('payload_too_large', 'The body is too large.')
}
