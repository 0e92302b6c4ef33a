import { type EntitySchemaWithMeta, p } from '@mikro-orm/core'

/**
 * A foreign key in the column of this name, which holds the other row's key. Never a cascade: no row disappears with another.
 * Without an index of its own: SQLite would get one for each key and PostgreSQL would not, so the entities name their indexes.
 */
export const refersTo = <E extends EntitySchemaWithMeta, Column extends string>(entity: E, column: Column) =>
  p.manyToOne(entity).fieldName(column).mapToPk().deleteRule('restrict').updateRule('no action').index(false)
