// proof only
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openDatabase } from '../../server/platform/database/open-database.ts'
import { changedTables, tableDigests } from '../../server/test/authorization/digest.ts'
import { type Books, openBooks } from './books.ts'
import { APP_KEY, ENTRY, environmentOf } from './run-affiliate.ts'

const it = suite('a disk that takes nothing')
let books: Books
it.before(async () => {
  books = await openBooks('sqlite')
})
it.after(() => books.market.close())

interface Done {
  code: number | null
  stdout: string
  stderr: string
}

function run(
  words: readonly string[],
  url: string,
  more: { limit?: number; uid?: number; dataFolder?: string } = {},
): Done {
  const line = [process.execPath, ENTRY, ...words].map((word) => `'${word}'`).join(' ')
  const limited = more.limit === undefined ? line : `ulimit -f ${more.limit}; exec ${line}`
  const { status, stdout, stderr } = spawnSync('sh', ['-c', limited], {
    env: environmentOf({ DATABASE_URL: url, APP_KEY, DATA_DIR: more.dataFolder ?? tmpdir(), PORT: '0' }),
    encoding: 'utf8',
    ...(more.uid === undefined ? {} : { uid: more.uid, gid: more.uid }),
  })
  return { code: status, stdout, stderr }
}

const ONE_LINE = /^affiliate: [^\n]*\n$/

it('that is full gives one line with the fix, and nothing is half done', async () => {
  const { url, folder, database } = books.market.bed.testDatabase
  const before = await tableDigests(database.reader)
  const commands = [
    ['users', 'suspend', books.creatorId, '--yes'],
    ['billing', 'credit', books.shop.merchantId, '10', '--reference', 'CR-9', '--reason', 'x', '--yes'],
    ['billing', 'close', '--as-of', '2099-01-01', '--yes'],
    ['db', 'backup', `${folder}/full.db`],
  ]
  // No file may grow beyond one block, which is how a full disk looks to a program.
  for (const words of commands) {
    const { code, stdout, stderr } = run(words, url, { limit: 1 })
    assert.equal([code, stdout], [1, ''], `${words}: ${stderr}`)
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /[Dd]isk .*Nothing was changed|[Dd]isk is full/)
  }
  assert.equal(changedTables(before, await tableDigests(database.reader)), [])
  assert.equal(
    readdirSync(folder).filter((name) => name.startsWith('full.db')),
    [],
  )
  // With room again the same command does its work.
  assert.is(run(commands[0] ?? [], url).code, 0)
  assert.is(run(['users', 'reinstate', books.creatorId, '--yes'], url).code, 0)
})

it('that is read-only gives one line with the fix, and reading goes on', async () => {
  const source = mkdtempSync(join(tmpdir(), 'affiliate-read-only-'))
  const file = join(source, 'shop.db')
  try {
    const made = await books.json('db', 'backup', join(books.market.bed.testDatabase.folder, 'whole.db'))
    copyFileSync(made.file, file)
    chmodSync(file, 0o444)
    chmodSync(source, 0o555)
    // Nothing is forbidden to root, so it is someone else who tries.
    const who = process.getuid?.() === 0 ? { uid: 65_534 } : {}
    const url = `sqlite:${file}`
    const write = run(['users', 'suspend', books.creatorId, '--yes'], url, who)
    assert.is(write.code, 1, write.stdout)
    assert.match(write.stderr, ONE_LINE)
    assert.match(
      write.stderr,
      /cannot be written\. Run as the user of the service|cannot be opened\. Your user/,
    )
    const read = run(['users', 'list', '--json'], url, who)
    assert.is(read.code, 0, read.stderr)
    assert.is(JSON.parse(read.stdout).items.length, 3)
    const doctor = run(['doctor', '--json'], url, who)
    assert.is(doctor.code, 1)
    const failed = JSON.parse(doctor.stdout).checks.find((one: { state: string }) => one.state === 'fail')
    assert.match(failed.detail, /cannot be written by this user/)
    const untouched = await openDatabase(url, { create: false, readOnly: true })
    const suspended = await untouched.reader
      .selectFrom('users')
      .select('id')
      .where('suspended_at', 'is not', null)
      .execute()
    await untouched.close()
    assert.equal(suspended, [])
  } finally {
    chmodSync(source, 0o755)
    rmSync(source, { recursive: true, force: true })
  }
  assert.not(existsSync(source))
})

it('whose data folder cannot be written gives a new service one line, and no database', () => {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-unwritable-'))
  const databases = join(folder, 'databases')
  mkdirSync(databases)
  chmodSync(databases, 0o777)
  const who = process.getuid?.() === 0 ? { uid: 65_534 } : {}
  const refused = (words: string[], url: string) => {
    const { code, stdout, stderr } = run(words, url, { ...who, dataFolder: folder })
    assert.equal([code, stdout], [1, ''], words.join(' '))
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /setting DATA_DIR: .* make its folder writable for this user, or name another\n$/)
  }
  try {
    chmodSync(folder, 0o555)
    refused(['serve'], `sqlite:${folder}/a.db`)
    refused(['seed'], `sqlite:${databases}/a.db`)
    assert.equal(readdirSync(folder), ['databases'])
    // With the files of an earlier start, only the sandbox still has to write.
    const access = { api_key: 'key', webhook_secret: 'whsec_AAAA', url: null }
    chmodSync(folder, 0o755)
    writeFileSync(join(folder, 'sandbox.json'), JSON.stringify(access))
    chmodSync(folder, 0o555)
    refused(['serve'], `sqlite:${databases}/a.db`)
    assert.equal(readdirSync(databases), [])
  } finally {
    chmodSync(folder, 0o755)
    rmSync(folder, { recursive: true })
  }
})

it.run()
