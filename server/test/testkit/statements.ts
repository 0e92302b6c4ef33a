import {
  type CompiledQuery,
  type KyselyPlugin,
  type PluginTransformQueryArgs,
  PostgresQueryCompiler,
  SqliteQueryCompiler,
} from 'kysely'
import * as assert from 'uvu/assert'
import type { Database, Queries } from '../../platform/database/database.ts'

/** A plugin that tells of each statement on its way to the database. */
export function onStatement(tell: (statement: PluginTransformQueryArgs) => void): KyselyPlugin {
  return {
    transformQuery(statement) {
      tell(statement)
      return statement.node
    },
    transformResult: async ({ result }) => result,
  }
}

/** A plugin that counts the statements that were run, prepared ones too. */
export function statementCounter(): KyselyPlugin & { count: number } {
  return {
    count: 0,
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      this.count += 1
      return result
    },
  }
}

/** The statements that `read` runs. */
export async function statementsOf(
  { dialect, reader }: Database,
  read: (db: Queries) => Promise<unknown>,
): Promise<CompiledQuery[]> {
  const compiler = dialect === 'sqlite' ? new SqliteQueryCompiler() : new PostgresQueryCompiler()
  const statements: CompiledQuery[] = []
  const compile = ({ node, queryId }: PluginTransformQueryArgs) =>
    statements.push(compiler.compileQuery(node, queryId))
  await read(reader.withPlugin(onStatement(compile)))
  assert.ok(statements.length > 0)
  return statements
}

/** The steps by which the database would carry a statement out. */
export async function stepsOf(
  { dialect }: Database,
  db: Queries,
  statement: CompiledQuery,
): Promise<string[]> {
  const how = dialect === 'sqlite' ? 'explain query plan' : 'explain'
  const explain = { ...statement, sql: `${how} ${statement.sql}` }
  const { rows } = await db.executeQuery<Record<string, string>>(explain)
  const steps = rows.map((row) => row.detail ?? row['QUERY PLAN'] ?? '')
  assert.ok(steps.length > 0)
  return steps
}
