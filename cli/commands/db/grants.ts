import type { Command } from 'commander'
import { exampleText, groupOf } from '../../command.ts'
import { assertMigrated, withDatabase } from '../../context.ts'
import { Failure } from '../../failures.ts'

/** The role in statements that are only printed. */
const EXAMPLE_ROLE = 'affiliate_service'

interface GrantOptions {
  dryRun?: boolean
}

export function addGrantsCommand(program: Command): void {
  groupOf(program, 'db')
    .command('grants')
    .description('let a PostgreSQL role run the service without owning its tables; without a role, print how')
    .argument('[role]', 'an existing role that is neither a superuser nor the tables’ owner')
    .option('--dry-run', 'print the statements for the role, and grant nothing')
    .addHelpText(
      'after',
      `
Run it as the owner of the tables, again after each migration. The role can read and change rows as the service does. It cannot
alter, truncate or drop a table, disable a trigger, or change rows of a table that is only added to, such as the journal. Let
the service's DATABASE_URL name this role, and run "db migrate" as the owner.
${exampleText('db grants', 'db grants affiliate_service', 'db grants affiliate_service --dry-run')}`,
    )
    .action((role: string | undefined, options: GrantOptions, command: Command) =>
      grants(role, options, command),
    )
}

function grants(role: string | undefined, { dryRun = false }: GrantOptions, command: Command): Promise<void> {
  const applies = role !== undefined && !dryRun
  return withDatabase(
    command,
    async ({ out, database }) => {
      if (database.dialect !== 'postgresql') {
        throw new Failure('SQLite has no roles. Protect the file with the permissions of the file system.')
      }
      await assertMigrated(database)
      const { grantStatements, roleProblem } = await import('../../../server/migrations/grants.ts')
      const problem = role === undefined ? null : await roleProblem(database, role)
      if (problem !== null) throw new Failure(problem)
      const statements = await grantStatements(database, role ?? EXAMPLE_ROLE)
      if (applies) {
        const { sql } = await import('kysely')
        await database.transaction(async (tx) => {
          for (const statement of statements) await sql.raw(statement).execute(tx)
        })
      }
      out.show({ role: role ?? null, applied: applies, statements }, () =>
        applies
          ? [
              `Role ${role} can run the service now. Name it in the service's DATABASE_URL.`,
              'After each "affiliate db migrate", which is for the owner of the tables, run this again.',
            ]
          : [
              ...(role === undefined ? [`create role ${EXAMPLE_ROLE} login password '...';`] : []),
              ...statements.map((statement) => `${statement};`),
            ],
      )
    },
    { readOnly: !applies },
  )
}
