// proof only
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { connectStore } from '../../server/stores/stores.service.ts'
import { changedTables, tableDigests } from '../../server/test/authorization/digest.ts'
import { addLink, addLiveOffer } from '../../server/test/testkit/listings.ts'
import { verify } from '../../server/test/testkit/marketplace.ts'
import { orderBody, orderHeaders } from '../../server/test/testkit/orders.ts'
import { addUser } from '../../server/test/testkit/people.ts'
import { assertNone } from '../../server/test/testkit/pluck.ts'
import { call, openServiceBed, type ServiceBed } from '../../server/test/testkit/service-bed.ts'
import { suiteOverBooks } from './books.ts'
import { APP_KEY, ENTRY, environmentOf } from './run-affiliate.ts'
import { type EndedHere, runHere } from './run-here.ts'
import { openSmallDisk, type SmallDisk } from './small-disk.ts'

const it = suite('a disk that is really full')
const disk = openSmallDisk(16)
if (disk === null) it.skip('this user can mount no small file system here to be filled', () => {})

let bed: ServiceBed
let creatorId: string
let slug: string
let affiliate: (...args: string[]) => Promise<EndedHere>

const STORE = { domain: 'chenab-lawn.myshopify.com', secret: 'a-secret-of-the-store' }

/** A service whose database and keys lie on the disk, with a link. */
async function openService(disk: SmallDisk): Promise<void> {
  const settings = { DATABASE_URL: `sqlite:${join(disk.folder, 'affiliate.db')}`, DATA_DIR: disk.folder }
  bed = await openServiceBed('sqlite', settings)
  const { platform } = bed.service.app
  const merchant = await addUser(platform, 'merchant', 'Chenab Lawn')
  const creator = await addUser(platform, 'creator', 'Sana Mirza')
  const store = { shop_domain: STORE.domain, webhook_secret: STORE.secret }
  await connectStore(platform, merchant.userId, store)
  const terms = { commission_rate: 1250, product_ids: ['8123456789012'] }
  const offer = await addLiveOffer(platform, merchant, terms)
  ;({ slug } = await addLink(platform, merchant, creator, offer.id))
  creatorId = creator.userId
  // The service has made a key of its own.
  affiliate = (...args) => runHere(args, { ...settings, APP_KEY: '' })
}

const ONE_LINE = /^affiliate: [^\n]*\n$/
const MEND = /The disk is full\. Free some space, .*\. Nothing was changed\./

if (disk !== null) {
  it.before(() => openService(disk))
  it.after(async () => {
    try {
      await bed?.close()
    } finally {
      await disk.close()
    }
  })
  it('refuses commands in one line with the fix, and does nothing by half', () => refusesCommands(disk))
  it('makes the service refuse what it cannot keep, and take it when there is room', () =>
    refusesEvents(disk))
}

async function refusesCommands(disk: SmallDisk): Promise<void> {
  const { reader } = bed.service.app.database
  const before = await tableDigests(reader)
  const commands = [
    ['users', 'suspend', creatorId, '--yes'],
    ['stores', 'release', STORE.domain, '--yes'],
    ['db', 'backup', join(disk.folder, 'copy.db')],
  ]
  disk.fill()
  for (const words of commands) {
    const { code, stdout, stderr } = await affiliate(...words)
    assert.equal([code, stdout], [1, ''], `${words}: ${stderr}`)
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, MEND)
  }
  // Commands that read still work.
  for (const words of [['users', 'list'], ['ledger', 'verify'], ['status']]) {
    const { code, stderr } = await affiliate(...words, '--json')
    assert.is(code, 0, `${words}: ${stderr}`)
  }
  assert.equal(changedTables(before, await tableDigests(reader)), [])
  assertNone(fs.readdirSync(disk.folder), (name) => name.startsWith('copy.db'))
  disk.free()
  for (const words of [commands[2] ?? [], commands[0] ?? [], ['users', 'reinstate', creatorId, '--yes']]) {
    const { code, stderr } = await affiliate(...words)
    assert.is(code, 0, `${words}: ${stderr}`)
  }
}

async function refusesEvents(disk: SmallDisk): Promise<void> {
  const replay = (...more: string[]) => affiliate('webhooks', 'replay', '--url', bed.url, ...more)
  const body = join(bed.testDatabase.folder, 'order.json')
  fs.writeFileSync(body, orderBody({ price: 250_000, createdAt: Date.now() }))
  const { reader } = bed.service.app.database
  const before = await tableDigests(reader)
  disk.fill()
  const account = { email: 'new@example.pk', password: 'a long passphrase', role: 'creator' }
  const refused = await call(bed.url, 'POST', '/auth/register', { body: { ...account, display_name: 'N' } })
  assert.equal([refused.status, refused.body.code], [503, 'unavailable'])
  const clicked = await replay('path-landing-site', '--link', slug)
  const sent = await replay('--store', STORE.domain, '--body', body)
  const raw = fs.readFileSync(body)
  const headers = orderHeaders(STORE, 'd-1', raw)
  const event = await call(bed.url, 'POST', '/webhooks/store-sales', { raw, headers })
  assert.equal([clicked.code, sent.code], [1, 1])
  // A visitor still reaches the product, only untracked.
  assert.match(clicked.stderr, /^affiliate: Link [^\n]* \(HTTP 302\): [^\n]* cannot keep visits [^\n]*\n$/)
  assert.match(sent.stderr, ONE_LINE)
  assert.match(sent.stderr, MEND)
  assert.equal([event.status, event.body.code], [503, 'unavailable'])
  assert.is((await call(bed.url, 'GET', '/offers')).status, 200)
  assert.equal(changedTables(before, await tableDigests(reader)), [])
  disk.free()
  const taken = await replay('path-landing-site', '--link', slug, '--json')
  assert.is(taken.code, 0, taken.stderr)
  assert.is(JSON.parse(taken.stdout).items[0].sale.acceptance_status, 'accepted')
  await verify(bed.service.app.platform)
}

it.run()

const { it: unwritable, books } = suiteOverBooks('a disk that takes nothing')

function run(words: readonly string[], url: string, dataFolder = tmpdir()) {
  // Nothing is forbidden to root, so it is someone else who tries.
  const who = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const { status, stdout, stderr } = spawnSync(process.execPath, [ENTRY, ...words], {
    // It could not write its coverage either, and would say so.
    env: environmentOf({
      DATABASE_URL: url,
      APP_KEY,
      DATA_DIR: dataFolder,
      PORT: '0',
      NODE_V8_COVERAGE: '',
    }),
    encoding: 'utf8',
    ...who,
  })
  return { code: status, stdout, stderr }
}

unwritable('that is read-only gives one line with the fix, and reading goes on', async () => {
  const source = fs.mkdtempSync(join(tmpdir(), 'affiliate-read-only-'))
  const file = join(source, 'shop.db')
  try {
    const made = await books.json('db', 'backup', join(books.market.bed.testDatabase.folder, 'whole.db'))
    fs.copyFileSync(made.file, file)
    const before = fs.readFileSync(file)
    fs.chmodSync(file, 0o444)
    fs.chmodSync(source, 0o555)
    const url = `sqlite:${file}`
    const write = run(['users', 'suspend', books.creatorId, '--yes'], url)
    assert.is(write.code, 1, write.stdout)
    assert.match(write.stderr, ONE_LINE)
    const mend = /cannot be written\. Run as the user of the service|cannot be opened\. Your user/
    assert.match(write.stderr, mend)
    const read = run(['users', 'list', '--json'], url)
    assert.is(read.code, 0, read.stderr)
    assert.is(JSON.parse(read.stdout).items.length, 3)
    const doctor = run(['doctor', '--json'], url)
    assert.is(doctor.code, 1)
    const failed = JSON.parse(doctor.stdout).checks.find((one: { state: string }) => one.state === 'fail')
    assert.match(failed.detail, /cannot be written by this user/)
    assert.ok(fs.readFileSync(file).equals(before))
  } finally {
    fs.chmodSync(source, 0o755)
    fs.rmSync(source, { recursive: true, force: true })
  }
})

unwritable('whose data folder cannot be written gives a new service one line, and no database', () => {
  const folder = fs.mkdtempSync(join(tmpdir(), 'affiliate-unwritable-'))
  const databases = join(folder, 'databases')
  fs.mkdirSync(databases)
  fs.chmodSync(databases, 0o777)
  const refused = (command: string, url: string) => {
    fs.chmodSync(folder, 0o555)
    const { code, stdout, stderr } = run([command], url, folder)
    fs.chmodSync(folder, 0o755)
    assert.equal([code, stdout], [1, ''], command)
    assert.match(stderr, ONE_LINE)
    assert.match(stderr, /setting DATA_DIR: .* make its folder writable for this user, or name another\n$/)
  }
  try {
    refused('serve', `sqlite:${folder}/a.db`)
    refused('seed', `sqlite:${databases}/a.db`)
    assert.equal(fs.readdirSync(folder), ['databases'])
    // With the files of an earlier start, only the sandbox still has to write.
    const access = { api_key: 'key', webhook_secret: 'whsec_AAAA', url: null }
    fs.writeFileSync(join(folder, 'sandbox.json'), JSON.stringify(access))
    refused('serve', `sqlite:${databases}/a.db`)
    assert.equal(fs.readdirSync(databases), [])
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
})

unwritable.run()
