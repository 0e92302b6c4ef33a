import { p } from '@mikro-orm/core'

/*
 * The column types of the schema. They read and bind the same on SQLite and PostgreSQL: times are epoch milliseconds, structured values are
 * JSON text, and flags are 0 or 1.
 */

/** A UUIDv7, as text. */
export const id = () => p.uuid()
/** Epoch milliseconds, UTC. */
export const moment = () => p.bigint('number')
/** Whole paisa. */
export const paisa = () => p.bigint('number')
/** Whole basis points. */
export const basisPoints = () => p.integer()
export const count = () => p.integer()
export const text = () => p.text()
/** One of a few values; the entity adds the check constraint with `oneOf`. */
export const word = <W extends string>() => p.text().$type<W>()
/** JSON as text: written with JSON.stringify, read with JSON.parse by the concept's store. */
export const json = () => p.text()

/** The check constraint for a `word` column. */
export function oneOf(table: string, column: string, words: readonly string[]) {
  return {
    name: `${table}_${column}_check`,
    expression: `${column} in (${words.map((w) => `'${w}'`).join(', ')})`,
  }
}
