/**
 * Table and column types for the query builder. `server/schema.ts` fills them in from the entities. An interface, because declarations name
 * it where they would write out a type in full, which for all tables is more than the compiler writes.
 */
// biome-ignore lint/suspicious/noEmptyInterface: filled in by declaration merging
export interface Schema {}
