/** A seed for a proof without fast-check: the usual one, TEST_SEED, or any if that is `random`. */
export function testSeed(usual: number): number {
  const given = process.env.TEST_SEED
  return given === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(given ?? usual)
}

/** Repeatable numbers in [0, 1), the same on every machine (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
