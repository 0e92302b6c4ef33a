/** What a visitor does within it on the same link is one visit to whoever counts visitors. */
export const REPEAT_WITHIN_MS = 3_600_000

/**
 * Whether a visit at `at` only repeats the one that was counted at `countedAt` (epoch ms). The hour runs from the counted one, so that
 * somebody who keeps coming is counted every hour; a clock that was set back far counts again instead of waiting to catch up.
 */
export function isRepeat(countedAt: number | undefined, at: number): boolean {
  return countedAt !== undefined && Math.abs(at - countedAt) < REPEAT_WITHIN_MS
}

/**
 * The part of an address that one subscriber has to themselves: an IPv4 address, or the first 64 bits of an IPv6 one, below which
 * a single household picks addresses at will.
 */
export function subscriberOf(address: string): string {
  if (!address.includes(':')) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped) return mapped
  const [front = '', back] = address.toLowerCase().replace(/%.*$/, '').split('::')
  const head = front === '' ? [] : front.split(':')
  if (back === undefined) return head.slice(0, 4).join(':')
  const tail = back === '' ? [] : back.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => '0')
  return [...head, ...zeros, ...tail].slice(0, 4).join(':')
}
