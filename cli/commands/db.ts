import { Option } from 'commander'
import { type CliCommand, lazy } from '../command.ts'

const actions = lazy(() => import('./db.actions.ts'))

export function addDatabaseCommands(program: CliCommand): void {
  const group = program.subcommand('db', 'the database: its schema and its backups')
  group
    .subcommand(
      'migrate',
      'bring the database to the newest schema; makes database and keys where there are none',
    )
    .examples('db migrate', 'db migrate --database-url sqlite:./data/affiliate.db')
    .action(actions.migrateDatabase)
  group
    .subcommand('status', 'where the database lies, and which migrations have run and which wait')
    .examples('db status --json')
    .action(actions.status)
  group
    .subcommand(
      'mark-development',
      'mark a copy of a production database as one of development, so that "webhooks replay" and the sandbox work on it',
    )
    .remarks(`A service that starts with NODE_ENV=production marks its database, and copies carry the mark. Refused with
NODE_ENV=production, and on the database that the production service uses.`)
    .examples('db mark-development --database-url sqlite:./copy.db --yes')
    .action(actions.markAsDevelopment)
  group
    .subcommand('backup', 'write a whole copy to FILE while the service goes on; FILE must not exist')
    .argument('<file>')
    .examples('db backup ./affiliate-2026-11-20.db')
    .action(actions.backup)
  group
    .subcommand(
      'restore',
      'restore a backup into a new database, verify its books, and say how to switch to it',
    )
    .argument('<file>', 'what "db backup" wrote')
    .option('--to <name>', 'the file (SQLite) or database (PostgreSQL) to make; it must not exist')
    .addOption(
      new Option('--discard', 'delete the copy once its books are verified: a drill').conflicts('to'),
    )
    .remarks(`The present database is not touched. The copy is migrated to this version, and needs the APP_KEY of the backup. PostgreSQL needs
pg_restore, and a role that may create databases; DATABASE_URL names the server.`)
    .examples(
      'db restore ./affiliate-2026-11-20.db',
      'db restore ./affiliate.dump --to affiliate_november',
      'db restore ./affiliate.dump --discard',
    )
    .action(actions.restore)
  group
    .subcommand(
      'grants',
      'let a PostgreSQL role run the service without owning its tables; without a role, print how',
    )
    .argument('[role]', 'an existing role that is neither a superuser nor the tables’ owner')
    .option('--dry-run', 'print the statements for the role, and grant nothing')
    .remarks(`Run it as the owner of the tables, again after each migration. The role can read and change rows as the service does. It cannot
alter, truncate or drop a table, disable a trigger, or change rows of a table that is only added to, such as the journal. Let
the service's DATABASE_URL name this role, and run "db migrate" as the owner.`)
    .examples('db grants', 'db grants affiliate_service', 'db grants affiliate_service --dry-run')
    .action(actions.grants)
}
