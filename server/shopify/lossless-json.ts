import { parseBoundedJson, UnreadableJson } from '../platform/bounded-json.ts'
import { MalformedOrder } from './malformed-order.ts'

/** `parseBoundedJson`, which keeps every digit of long integers; throws `MalformedOrder` for what it refuses. */
export function parseLossless(text: string): unknown {
  try {
    return parseBoundedJson(text)
  } catch (error) {
    if (error instanceof UnreadableJson) throw new MalformedOrder(error.reason)
    throw error
  }
}
