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
import { type Books, openBooks } from './books.ts'
import { APP_KEY, ENTRY, environmentOf } from './run-affiliate.ts'

const it = suite('a disk that takes nothing')
let books: Books
it.before(async () => {
  books = await openBooks('sqlite')
})
it.after(() => books.market.close())

function run(words: readonly string[], url: string, dataFolder = tmpdir()) {
  // Nothing is forbidden to root, so it is someone else who tries.
  const who = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const { status, stdout, stderr } = spawnSync(process.execPath, [ENTRY, ...words], {
    env: environmentOf({ DATABASE_URL: url, APP_KEY, DATA_DIR: dataFolder, PORT: '0' }),
    encoding: 'utf8',
    ...who,
  })
  return { code: status, stdout, stderr }
}

const ONE_LINE = /^affiliate: [^\n]*\n$/

it('that is read-only gives one line with the fix, and reading goes on', async () => {
  const source = mkdtempSync(join(tmpdir(), 'affiliate-read-only-'))
  const file = join(source, 'shop.db')
  try {
    const made = await books.json('db', 'backup', join(books.market.bed.testDatabase.folder, 'whole.db'))
    copyFileSync(made.file, file)
    chmodSync(file, 0o444)
    chmodSync(source, 0o555)
    const url = `sqlite:${file}`
    const write = run(['users', 'suspend', books.creatorId, '--yes'], url)
    assert.is(write.code, 1, write.stdout)
    assert.match(write.stderr, ONE_LINE)
    assert.match(
      write.stderr,
      /cannot be written\. Run as the user of the service|cannot be opened\. Your user/,
    )
    const read = run(['users', 'list', '--json'], url)
    assert.is(read.code, 0, read.stderr)
    assert.is(JSON.parse(read.stdout).items.length, 3)
    const doctor = run(['doctor', '--json'], url)
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
  const refused = (words: string[], url: string) => {
    const { code, stdout, stderr } = run(words, url, folder)
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
