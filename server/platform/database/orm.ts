import {
  type ChangeSet,
  type Configuration,
  type EntityMetadata,
  type EventArgs,
  type EventSubscriber,
  isRaw,
  LockMode,
  MikroORM,
  type Options,
  type Transaction,
} from '@mikro-orm/core'
import {
  AbstractSqlConnection,
  AbstractSqlDriver,
  type AbstractSqlPlatform,
  BasePostgreSqlPlatform,
  NativeQueryBuilder,
  PostgreSqlNativeQueryBuilder,
  SqlitePlatform,
} from '@mikro-orm/sql'
import { CompiledQuery } from 'kysely'
import { type Dialect, type Tx, transactionKeys } from './database.ts'
import { digestOf, isDigested, noteChange, requireAuthentic, requireUnchanged } from './protected-rows.ts'
import type { Digested } from './protected-tables.ts'

/*
 * MikroORM for loading, changing and saving entities inside our transactions. It never connects: its statements run on the Kysely
 * transaction that the EntityManager was given. Load this module through `entities.ts`, which does so at first use.
 */

type Parameters = readonly unknown[]

/** Sends the ORM's statements to the EntityManager's transaction, with bound parameters. */
class TransactionConnection extends AbstractSqlConnection {
  override async connect(): Promise<void> {}

  override createKyselyDialect(): never {
    throw new Error('entities are loaded and saved inside a transaction only')
  }

  // biome-ignore lint/suspicious/noExplicitAny: the type that the base class declares
  override async execute<T = any>(
    query: string | NativeQueryBuilder | { sql: string; params: Parameters },
    parameters: Parameters = [],
    method: 'all' | 'get' | 'run' = 'all',
    transaction?: Transaction,
  ): Promise<T> {
    if (!transaction) this.createKyselyDialect()
    const raw = query instanceof NativeQueryBuilder ? query.toRaw() : query
    const [text, values] = typeof raw === 'string' ? [raw, parameters] : [raw.sql, raw.params]
    const bound: unknown[] = []
    const sql = this.#bind(text, values, bound)
    const result = await (transaction as unknown as Tx).executeQuery(CompiledQuery.raw(sql, bound))
    return this.transformRawResult<T>(result, method)
  }

  /** `text` with the database's own placeholders; adds the values that stand for them to `bound`. */
  #bind(text: string, values: Parameters, bound: unknown[]): string {
    let next = 0
    return text.replaceAll(/\\\?|\?\??/g, (mark) => {
      if (mark === '\\?') return '?'
      const value = values[next++]
      if (mark === '??') return this.platform.quoteIdentifier(String(value))
      if (isRaw(value)) return this.#bind(value.sql, value.params, bound)
      bound.push(value)
      return this.platform instanceof SqlitePlatform ? '?' : `$${bound.length}`
    })
  }
}

/** Locks rows against other writers, but not against rows that refer to them. */
class PostgresQueryBuilder extends PostgreSqlNativeQueryBuilder {
  protected override addLockClause(): void {
    if (this.options.lockMode === LockMode.PESSIMISTIC_WRITE) this.parts.push('for no key update')
    else super.addLockClause()
  }
}

class PostgresPlatform extends BasePostgreSqlPlatform {
  override createNativeQueryBuilder(): PostgresQueryBuilder {
    return new PostgresQueryBuilder(this)
  }
}

type EntityObject = Record<string, unknown> & { row_digest?: string }

/** Checks the digest of every protected row that is loaded, and renews it when the row is saved. */
class RowDigestSubscriber implements EventSubscriber<EntityObject> {
  onLoad({ entity, meta }: EventArgs<EntityObject>): void {
    const table = digestedTable(meta)
    if (table) requireAuthentic(transactionKeys(), table, rowOf(entity, meta))
  }

  beforeCreate({ entity, meta }: EventArgs<EntityObject>): void {
    const table = digestedTable(meta)
    if (!table) return
    const digest = digestOf(transactionKeys(), table, rowOf(entity, meta))
    entity.row_digest = digest
    noteChange(table, null, digest)
  }

  async beforeUpdate({ entity, meta, em, changeSet }: EventArgs<EntityObject>): Promise<void> {
    const table = digestedTable(meta)
    if (!table) return
    const row = rowOf(entity, meta)
    const former = formerDigest(changeSet)
    await requireUnchanged(em.getTransactionContext() as unknown as Tx, table, row, former)
    const digest = digestOf(transactionKeys(), table, row)
    entity.row_digest = digest
    noteChange(table, former, digest)
  }

  beforeDelete({ meta, changeSet }: EventArgs<EntityObject>): void {
    const table = digestedTable(meta)
    if (table) noteChange(table, formerDigest(changeSet), null)
  }
}

function digestedTable({ tableName }: EntityMetadata<EntityObject>): Digested | null {
  return isDigested(tableName) ? tableName : null
}

function formerDigest(changeSet: ChangeSet<EntityObject> | undefined): string {
  return String(changeSet?.originalEntity?.row_digest)
}

/** The entity as its row, by the names of the columns. */
function rowOf(entity: EntityObject, meta: EntityMetadata<EntityObject>): EntityObject {
  return Object.fromEntries(
    meta.props.map(({ name, fieldNames, default: initial }) => [
      fieldNames[0] ?? name,
      entity[name] ?? initial ?? null,
    ]),
  )
}

/** An ORM without a connection, for transactions of this dialect. */
export function createOrm(dialect: Dialect, entities: NonNullable<Options['entities']>): MikroORM {
  const platform: AbstractSqlPlatform = dialect === 'sqlite' ? new SqlitePlatform() : new PostgresPlatform()
  class Driver extends AbstractSqlDriver<TransactionConnection> {
    constructor(config: Configuration) {
      super(config, platform, TransactionConnection, [])
    }

    /** Leaves database errors as they are, for `Database.faultOf`. */
    override convertException(error: Error): never {
      throw error
    }
  }
  return new MikroORM({
    driver: Driver,
    dbName: dialect,
    entities,
    subscribers: [new RowDigestSubscriber()],
    logger: () => {},
  })
}
