import fc from 'fast-check'

/** Any number will do: it only has to be the same on every machine. */
const USUAL_SEED = 20_261_122

/**
 * fast-check, seeded. One commit must get one verdict, so the seed is fixed unless TEST_SEED names another number, or
 * `random` to look further. fast-check prints the seed of what fails.
 */
function chosenSeed(): number | undefined {
  const given = process.env.TEST_SEED
  if (given === 'random') return undefined
  const seed = given === undefined ? USUAL_SEED : Number(given)
  if (!Number.isSafeInteger(seed)) throw new Error(`TEST_SEED must be a whole number or random, not ${given}`)
  return seed
}

// A hunt for planted bugs asks only whether something fails, not for the shortest way to it.
fc.configureGlobal({ seed: chosenSeed(), endOnFailure: process.env.TEST_UNSHRUNK !== undefined })

/** One of these arbitraries, as often as its weight says. */
export function either<T>(
  ...choices: (readonly [weight: number, arbitrary: fc.Arbitrary<T>])[]
): fc.Arbitrary<T> {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })))
}

/** The same of values. */
export function oftener<const T>(...choices: (readonly [weight: number, value: T])[]): fc.Arbitrary<T> {
  return either(...choices.map(([weight, value]) => [weight, fc.constant(value)] as const))
}

const BEFORE_SURROGATES = 0xd800
const SURROGATES = 0x800
const CHARACTERS = 0x110000 - SURROGATES

/**
 * Any character at all but halves of a pair, as a string's `unit`. fast-check's own `binary` draws from the same ones, but first puts
 * all of them into a table, which takes each process a second.
 */
export const anyCharacter: fc.Arbitrary<string> = fc
  .nat(CHARACTERS - 1)
  .map((n) => String.fromCodePoint(n < BEFORE_SURROGATES ? n : n + SURROGATES), numberOfCharacter)

function numberOfCharacter(text: unknown): number {
  const point = typeof text === 'string' ? text.codePointAt(0) : undefined
  if (point === undefined || text !== String.fromCodePoint(point)) throw new Error('not one character')
  return point < BEFORE_SURROGATES ? point : point - SURROGATES
}

export { fc }
