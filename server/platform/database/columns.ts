import { type EntitySchemaWithMeta, p } from '@mikro-orm/core'

/*
 * The column types of the schema. They read and bind the same on SQLite and PostgreSQL: times are epoch milliseconds, structured values are
 * JSON text, and flags are 0 or 1.
 */

/** A UUIDv7, as text. */
export const id = () => p.uuid()
/** Epoch milliseconds, UTC. */
export const epochMs = () => p.bigint('number')
/** Whole paisa. */
export const paisa = () => p.bigint('number')
/** Whole basis points. */
export const basisPoints = () => p.integer()
export const count = () => p.integer()
export const text = () => p.text()
/** One of a few values; the entity adds the check constraint with `oneOf`. */
export const enumText = <W extends string>() => p.text().$type<W>()
/** JSON as text: written with JSON.stringify, read with JSON.parse by the concept's store. */
export const json = () => p.text()

/** The keyed digest of a row of protected-tables.ts. Whatever writes the row sets it. */
export const rowDigest = () => p.text()

/** The check constraint for an `enumText` column. */
export function oneOf(table: string, column: string, words: readonly string[]) {
  return {
    name: `${table}_${column}_check`,
    expression: `${column} in (${words.map((w) => `'${w}'`).join(', ')})`,
  }
}

/**
 * A foreign key in the column of this name, which holds the other row's key. Nothing cascades. It has no index: MikroORM would add one on
 * SQLite only, so the entities declare theirs.
 */
export const refersTo = <E extends EntitySchemaWithMeta, Column extends string>(entity: E, column: Column) =>
  p.manyToOne(entity).fieldName(column).mapToPk().deleteRule('restrict').updateRule('no action').index(false)
