import { type TestDialect, testDialects } from './databases.ts'

/** `npm run proof` sets the form and the counts of each proof; `npm test` sets nothing and runs one example of it. */
export const PROOF_FORM = process.env.PROOF_FORM as 'short' | 'long' | undefined

/** A count from the environment. Throws unless it is a whole number. */
export function proofCount(name: string, example: number): number {
  const given = process.env[name]
  const count = given === undefined ? example : Number(given)
  if (!Number.isSafeInteger(count) || count < 0)
    throw new Error(`${name} must be a whole number, not ${given}`)
  return count
}

/** A proof, or a run of named files: what `npm test` otherwise does on SQLite only, it does on both databases. */
export const PLAYS_ALL = PROOF_FORM !== undefined || process.env.TEST_NAMED_FILES !== undefined

/** For tests whose subject hardly depends on the database: `npm test` plays them on SQLite, a proof on both databases. */
export function proofDialects(): readonly TestDialect[] {
  return PLAYS_ALL ? testDialects() : ['sqlite']
}
