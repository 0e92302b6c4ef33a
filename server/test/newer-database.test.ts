import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runHere } from '../../cli/test/run-here.ts'
import { migrate } from '../migrator.ts'
import { startService } from '../service.ts'
import { openTestDatabase, testDialects } from './testkit/databases.ts'

const REFUSAL = /newer version: this one does not know 00099-later\. Install that version again/

for (const dialect of testDialects()) {
  const it = suite(`a database of a newer version on ${dialect}`)

  it('is refused by the service and by commands that write; others say what it is', async () => {
    const { database, url, folder, close } = await openTestDatabase(dialect, { migrated: true })
    try {
      await database.transaction((tx) =>
        sql`insert into mikro_orm_migrations (name) values ('00099-later')`.execute(tx),
      )
      const environment = { DATABASE_URL: url, DATA_DIR: folder }
      const messageOf = (work: Promise<unknown>) => work.then(String, (error: Error) => error.message)
      assert.match(await messageOf(migrate(database)), REFUSAL)
      const started = startService({ environment: { ...environment, PORT: '0', LOG_LEVEL: 'silent' } })
      assert.match(await messageOf(started), REFUSAL)
      const run = (...args: string[]) => runHere(args, environment)
      assert.match((await run('billing', 'close', '--yes')).stderr, REFUSAL)
      const status = await run('status')
      assert.is(status.code, 0, status.stderr)
      assert.match(status.stdout, /newer version: this one does not know 00099-later/)
      assert.match((await run('doctor')).stdout, /✗ migrations +the database belongs to a newer version/)
      assert.match((await run('db', 'status')).stdout, /Unknown +00099-later/)
    } finally {
      await close()
    }
  })

  it.run()
}
