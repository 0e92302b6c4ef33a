import type { EntityManager, EntitySchema, LockMode, MikroORM } from '@mikro-orm/core'
import { beforeCommit, type Dialect, dialectOf, type Tx } from './database.ts'
import type { EntityClasses } from './schema.ts'

// biome-ignore lint/suspicious/noExplicitAny: entities of all kinds
type ByName = Record<string, EntitySchema<any, any, any>>

let loadClasses: (() => Promise<EntityClasses & ByName>) | undefined

/** Called once, before any database is opened: where the entities are, which are loaded at their first use. */
export function registerEntities(load: () => Promise<EntityClasses & ByName>): void {
  loadClasses = load
}

/** All entities by name. */
export async function entityClasses(): Promise<EntityClasses & ByName> {
  if (!loadClasses) throw new Error('no entities are registered')
  return loadClasses()
}

/** The EntityManager of one transaction, and the entities to use it with. */
export interface Entities extends EntityClasses {
  em: EntityManager
}

/**
 * Option for `em.find` and `em.findOne`: waits for transactions that have changed the row, reads it afterwards, and lets no other
 * transaction change it until this one ends. On SQLite a transaction excludes all other writers already.
 */
export const LOCK = { lockMode: 3 satisfies LockMode.PESSIMISTIC_WRITE, refresh: true } as const

const ofTransactions = new WeakMap<Tx, Entities>()

/**
 * The EntityManager of a transaction: rows are loaded as objects, and what is changed on them is saved before the commit. To change a row that
 * another transaction may change too, load it with `LOCK`. Call `em.flush()` before a Kysely statement that must see the
 * changes. When a transaction is repeated, it starts without entities.
 */
export async function entities(tx: Tx): Promise<Entities> {
  const { orm, classes } = await loadOrm(dialectOf(tx))
  const known = ofTransactions.get(tx)
  if (known) return known
  const em = orm.em.fork()
  em.setTransactionContext(tx)
  beforeCommit(tx, () => em.flush())
  const opened = { ...classes, em }
  ofTransactions.set(tx, opened)
  return opened
}

interface LoadedOrm {
  orm: MikroORM
  classes: EntityClasses
}

const loaded = new Map<Dialect, Promise<LoadedOrm>>()

/** Loads the ORM, if that has not happened: some tenths of a second. `entities` does so at its first use. */
export function loadOrm(dialect: Dialect): Promise<LoadedOrm> {
  let loading = loaded.get(dialect)
  if (!loading) {
    loading = importOrm(dialect)
    loaded.set(dialect, loading)
  }
  return loading
}

async function importOrm(dialect: Dialect): Promise<LoadedOrm> {
  const { createOrm } = await import('./orm.ts')
  const classes = await entityClasses()
  return { orm: createOrm(dialect, Object.values(classes)), classes }
}
