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

/** For proofs whose subject hardly depends on the database: `npm test` runs them on SQLite only. */
export function proofDialects(): readonly TestDialect[] {
  return PROOF_FORM ? testDialects() : ['sqlite']
}
