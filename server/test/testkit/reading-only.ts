import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import type { TestDatabase } from './databases.ts'

/**
 * Runs `work` with the URL of a database that shows whether its reader could write: PostgreSQL refuses to list users in a
 * transaction that may write, and of SQLite it is a copy with a log that the last one who may write would fold into the
 * file. On PostgreSQL the service cannot use the database afterwards.
 */
export async function mustOnlyRead(bed: TestDatabase, work: (url: string) => Promise<void>): Promise<void> {
  const { database } = bed
  if (database.dialect === 'postgresql') {
    const { writer } = database
    await sql`create function reads_only() returns boolean language plpgsql as
      'begin
        if current_setting(''transaction_read_only'') = ''off'' then raise exception ''opened for writing''; end if;
        return true;
      end'`.execute(writer)
    await sql`alter table users rename to kept_users`.execute(writer)
    await sql`create view users as select * from kept_users where reads_only()`.execute(writer)
    return work(bed.url)
  }
  const file = copied(database.file, mkdtempSync(join(bed.folder, 'copy-')))
  const before = readFileSync(file)
  await work(`sqlite:${file}`)
  assert.ok(before.equals(readFileSync(file)), 'the file was opened for writing')
}

function copied(file: string, folder: string): string {
  assert.ok(existsSync(`${file}-wal`), 'there is no log to fold in')
  for (const name of readdirSync(dirname(file))) {
    if (name === basename(file) || name === `${basename(file)}-wal`) {
      copyFileSync(join(dirname(file), name), join(folder, name))
    }
  }
  return join(folder, basename(file))
}
