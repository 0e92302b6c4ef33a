import { createHmac, hash, type KeyObject } from 'node:crypto'

const BLOCK_BYTES = 64
const HASH_BYTES = 32
const INNER = 0x36
const OUTER = 0x5c
/** Longer ones are rare, and not worth the memory. */
const LONGEST = 64 * 1024

/** What RFC 2104 has hashed in front of a message, and in front of that hash. */
interface Pads {
  inner: Buffer
  outer: Buffer
}

const padsOfKeys = new WeakMap<KeyObject, Pads>()
/** Nothing is waited for while they are in use, so one of each does. */
const innerInput = Buffer.allocUnsafeSlow(BLOCK_BYTES + LONGEST)
const outerInput = Buffer.allocUnsafeSlow(BLOCK_BYTES + HASH_BYTES)

/**
 * HMAC-SHA256 (RFC 2104) of a message. Node's own makes an object for each, of which the collector has to ask whether it is still
 * in use: in a loop of signatures that was most of its pauses. A hash in one go makes none.
 */
export function hmacSha256(key: KeyObject, message: Buffer): Buffer {
  if (message.length > LONGEST) return createHmac('sha256', key).update(message).digest()
  const { inner, outer } = padsOf(key)
  inner.copy(innerInput)
  message.copy(innerInput, BLOCK_BYTES)
  outer.copy(outerInput)
  hash('sha256', innerInput.subarray(0, BLOCK_BYTES + message.length), 'buffer').copy(outerInput, BLOCK_BYTES)
  return hash('sha256', outerInput, 'buffer')
}

function padsOf(key: KeyObject): Pads {
  const known = padsOfKeys.get(key)
  if (known) return known
  const secret = key.export()
  const short = secret.length > BLOCK_BYTES ? hash('sha256', secret, 'buffer') : secret
  const pads = { inner: padded(short, INNER), outer: padded(short, OUTER) }
  padsOfKeys.set(key, pads)
  return pads
}

function padded(secret: Buffer, pad: number): Buffer {
  const bytes = Buffer.alloc(BLOCK_BYTES, pad)
  secret.forEach((byte, place) => {
    bytes[place] = byte ^ pad
  })
  return bytes
}
