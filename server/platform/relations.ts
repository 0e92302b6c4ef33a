import { type EntitySchemaWithMeta, p } from '@mikro-orm/core'

/**
 * A foreign key column `<name>_id`. Never a cascade: nothing in the books goes because something else went.
 * Never an index by itself: SQLite would get one for each key that PostgreSQL does not, so the entities name them.
 */
export const refersTo = <E extends EntitySchemaWithMeta>(entity: E) =>
  p.manyToOne(entity).deleteRule('restrict').updateRule('no action').index(false)
