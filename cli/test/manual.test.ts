import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import BetterSqlite from 'better-sqlite3'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Service } from '../../server/service.ts'
import { codeOf } from '../../server/test/testkit/authenticator.ts'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { MANUAL_SETTINGS } from '../../server/test/testkit/manual-market.ts'
import { cycleOf, payoutOf } from '../../server/test/testkit/marketplace.ts'
import { addUser, setSuspended } from '../../server/test/testkit/people.ts'
import { assertNone, pluckAll } from '../../server/test/testkit/pluck.ts'
import { rowsOf } from '../../server/test/testkit/rows.ts'
import { startQuietly } from '../../server/test/testkit/service-bed.ts'
import { confirmTotp, startTotp } from '../../server/users/second-factor.service.ts'
import { type Books, openBooks } from './books.ts'
import { startAffiliate } from './run-affiliate.ts'

/** Two sales of one creator. */
const BILLED = '6187.37'
const EARNED = '5624.88'
const SETTINGS = { ...MANUAL_SETTINGS, PAYOUT_THRESHOLD: '1.00' }
/** Commands go by the clock on the wall. */
const WALL = { now: () => Date.now() }

const it = suite('bank transfers by hand')
let books: Books
let service: Service
let url: string
let adminId: string
let cycleId: string
let payoutId: string

it.before(async () => {
  books = await openBooks('sqlite')
  ;({ service, url } = await startQuietly({ ...books.settings, ...SETTINGS }))
  adminId = (await addUser(books.market.platform, 'admin')).userId
  const [cycle] = (await books.json('billing', 'cycles', '--state', 'open')).items
  cycleId = cycle.id
  await run(['billing', 'close', '--as-of', cycle.period_end, '--yes'])
})
it.after(async () => {
  await service.stop()
  await books.market.close()
})

const run = (args: string[], environment: Record<string, string> = {}) =>
  books.affiliate(args, { ...SETTINGS, ...environment })
const manual = (...args: string[]) => run(['manual', ...args])
const by = () => ['--as', `${adminId}@example.com`, '--yes']
/** By the admin, at the running service. */
const byThere = () => [...by(), '--url', url]
const refuses = async (args: string[], why: RegExp, code = 1, environment: Record<string, string> = {}) => {
  const ended = await run(['manual', ...args], environment)
  assert.match(ended.stderr, why)
  assert.is(ended.code, code, ended.stderr)
  return ended
}
const says = async (args: string[], ...patterns: RegExp[]) => {
  const ended = await manual(...args)
  assert.is(ended.code, 0, ended.stderr)
  for (const pattern of patterns) assert.match(ended.stdout, pattern)
}
/** Kills the command as soon as its unfinished file is there. */
const killAtItsFile = async (file: string, ...more: string[]) => {
  const command = startAffiliate(['manual', 'payout-file', file, ...more, ...by()], {
    environment: { ...books.settings, ...SETTINGS },
    folder: books.market.bed.testDatabase.folder,
  })
  await command.until(async () => existsSync(`${file}.part`) || existsSync(file))
  command.child.kill('SIGKILL')
  await command.ended
}
const transferOf = (subject_id: string) =>
  eventually(
    () => rowsOf(books.market.platform, 'manual_transfers', { subject_id }),
    ([row]) => row !== undefined,
  ).then(([row]) => row as NonNullable<typeof row>)
const audits = async () =>
  (await rowsOf(books.market.platform, 'audit_entries')).filter(({ action }) => action.startsWith('manual.'))

/** About the cycle, unless another is given. */
const received = (more: string[], about = cycleId, amount = BILLED, reference = 'ft 1') => [
  ...['received', about, '--amount', amount, '--reference', reference, ...more],
]

it('shows what is due on one screen', async () => {
  const { number } = await transferOf(cycleId)
  const { code, screen } = await books.type(['manual', 'due'], { columns: 80, environment: SETTINGS })
  assert.is(code, 0, screen)
  const lines = stripVTControlCharacters(screen).trimEnd().split('\n')
  assert.ok(lines.length < 24 && lines.every((line) => line.trimEnd().length <= 80), screen)
  assert.match(screen, number)
  const { to_receive, payouts } = JSON.parse((await manual('due', '--json')).stdout)
  const [item, ...others] = to_receive.items
  assert.equal([to_receive.amount, item.number, others, payouts], [BILLED, number, [], []])
  const [cycle] = JSON.parse((await run(['billing', 'cycles', '--state', 'closed', '--json'])).stdout).items
  assert.match(cycle.payment_instructions, /^Chenab Bank, PK36\w+\nReference: /)
})

it('refuses all but active admins, what can never be right, and a service that is not there', async () => {
  const { platform } = books.market
  const as = (email: string) => received(['--as', email, '--yes', '--url', url])
  await refuses(received(['--yes']), /required option '--as <email>'/, 2)
  await refuses(as(`${books.creatorId}@example.com`), /is not an admin/)
  await refuses(as('stranger@example.com'), /not found/)
  await setSuspended(platform, adminId, true)
  await refuses(received(byThere()), /is suspended/)
  await setSuspended(platform, adminId, false)
  await refuses(received(by(), 'INV1'), /not the id or number/, 2)
  await refuses(received(by(), cycleId, '1', '=1'), /not a bank reference/, 2)
  await refuses(['paid', ...by()], /Name a payout with --reference, or a result file/, 2)
  const other = /is about Rs 6,187\.37, not Rs 6,187\.00\. Nothing was done/
  await refuses(received(byThere(), cycleId, '6187.00'), other)
  const unknown = /Nothing that waits for a bank transfer is INVAAAAAAAAAAAA/
  await refuses(received(byThere(), 'INVAAAAAAAAAAAA'), unknown)
  await refuses(received([...by(), '--url', 'http://127.0.0.1:9']), /No service answers/)
  const remote = received([...by(), '--url', 'http://bazaar.example'])
  await refuses(remote, /neither https nor on this machine/, 2)
  await books.refuses(['manual', 'due'], /PROCESSOR is sandbox; these commands need PROCESSOR=manual/)
  assert.equal([(await transferOf(cycleId)).state, await audits()], ['open', []])
})

it('moves nothing where the event reaches another service', async () => {
  const other = createServer((request, response) => request.resume().on('end', () => response.end('{}')))
  await once(other.listen(0, '127.0.0.1'), 'listening')
  const { port } = other.address() as AddressInfo
  await refuses(received([...by(), '--url', `http://127.0.0.1:${port}`]), /it is not in this database/)
  other.close()
  assert.is((await cycleOf(books.market.platform, cycleId)).state, 'closed')
  await says(['due'], /Confirmed and not applied: repeat the command for INV/)
})

it('charges a cycle by its event, once, for each who says the same', async () => {
  const twice = [manual(...received(byThere())), manual(...received(byThere()))] as const
  const [one, other] = await Promise.all(twice)
  assert.equal([one.code, one.stdout], [0, other.stdout], one.stderr + other.stderr)
  assert.match(one.stdout, `Billing cycle ${cycleId} is charged: Rs 6,187.37, reference FT 1.`)
  assert.is((await cycleOf(books.market.platform, cycleId)).processor_payment_reference, 'FT 1')
  const another = received(byThere(), cycleId, BILLED, 'FT2')
  await refuses(another, /confirmed as paid already, with reference FT 1/)
  assert.is((await rowsOf(books.market.platform, 'inbound_events', { source: 'processor' })).length, 1)
  assert.equal(pluckAll(await audits(), 'action', 'actor'), [['manual.received', adminId]])
})

it('writes payouts into one private file for the bank', async () => {
  await run(['payouts', 'run', '--yes'])
  payoutId = JSON.parse((await run(['payouts', 'list', '--json'])).stdout).items[0].id
  const { number } = await transferOf(payoutId)
  const { folder } = books.market.bed.testDatabase
  await refuses(['payout-file', join(folder, 'no-folder', 'x.csv'), ...by()], /ENOENT.*Nothing was exported/)
  assert.is((await transferOf(payoutId)).file, null)
  const out = join(folder, 'bank.csv')
  // Killed while its mark waits for another writer: the next file has the payout.
  const other = new BetterSqlite(join(folder, 'affiliate.db'))
  other.exec('begin immediate')
  await killAtItsFile(out).finally(() => other.close())
  assert.is((await transferOf(payoutId)).file, null)
  await refuses(['payout-file', out, ...by()], /left from a command that ended early\. Delete it/)
  rmSync(`${out}.part`)
  const ended = await manual('payout-file', out, ...by())
  assert.match(ended.stdout, /Wrote 1 payout, Rs 5,624\.88 in all(.|\n)*Delete it once/, ended.stderr)
  assert.not.match(ended.stdout, /PK36SCBL/)
  const content = `beneficiary_title,iban,amount,reference\r\nA CREATOR,PK36SCBL0000001123456702,${EARNED},${number}\r\n`
  assert.equal([readFileSync(out, 'utf8'), statSync(out).mode & 0o777], [content, 0o600])
  await refuses(['payout-file', out, ...by()], /exists\. Name a new file/)
  await says(['payout-file', ...by()], /No payout waits to be exported/)
  const { file: name } = await transferOf(payoutId)
  const again = join(folder, 'again.csv')
  await says(['payout-file', again, '--again', name ?? '', ...by()], /Wrote 1 payout/)
  assert.is(readFileSync(again, 'utf8'), content)
  assertNone(readdirSync(folder), (entry) => entry.endsWith('.part'))
})

it('writes the same file again when the command was killed at it', async () => {
  const { folder } = books.market.bed.testDatabase
  const [killed, next] = [join(folder, 'killed.csv'), join(folder, 'next.csv')]
  const before = await transferOf(payoutId)
  const again = ['--again', before.file ?? '']
  await killAtItsFile(killed, ...again)
  assert.equal(await transferOf(payoutId), before)
  await says(['payout-file', next, ...again, ...by()], /Wrote 1 payout/)
  const content = readFileSync(join(folder, 'bank.csv'), 'utf8')
  assert.is(readFileSync(next, 'utf8'), content)
  // It has its name only when it is whole.
  if (existsSync(killed)) assert.is(readFileSync(killed, 'utf8'), content)
})

it('asks for the second factor in production', async () => {
  const { platform } = books.market
  const { APP_KEY = '' } = books.settings
  const production = { NODE_ENV: 'production', PUBLIC_BASE_URL: 'https://market.test', APP_KEY }
  const paid = ['paid', payoutId, '--reference', 'FT3', ...byThere()]
  await refuses(paid, /no second factor, which production needs/, 1, production)
  const { secret } = await startTotp(platform, adminId)
  await confirmTotp(platform, adminId, codeOf(secret, WALL, -1), adminId)
  await refuses(paid, /Not a terminal; give the code with --code/, 1, production)
  await refuses([...paid, '--code', '000000'], /The code is wrong/, 1, production)
  assert.is((await transferOf(payoutId)).state, 'open')
  const asked = () => run(['manual', ...paid, '--code', codeOf(secret, WALL)], production)
  const { code, stdout, stderr } = await asked()
  assert.is(code, 0, stderr)
  assert.match(stdout, `Payout ${payoutId} is paid: Rs 5,624.88, reference FT3.`)
  assert.is((await asked()).stdout, stdout)
  assert.is((await payoutOf(platform, payoutId)).state, 'paid')
  const failed = ['failed', payoutId, '--reason', 'closed', ...byThere()]
  await refuses(failed, /was confirmed as paid already, with reference FT3/)
})

it("reads the bank's result file, and says what was not applied", async () => {
  const { number } = await transferOf(payoutId)
  const file = join(books.market.bed.testDatabase.folder, 'results.csv')
  const from = ['paid', '--from', file, ...byThere()]
  const titles = '\ufeffNarration;amount;status;bank_reference'
  const write = (...rows: string[]) =>
    writeFileSync(file, Buffer.from([titles, ...rows, ''].join('\n'), 'utf16le'))
  write(`${number};5,624.88;paid;FT3`, `${number};5624.88;paid;FT3`)
  await refuses(from, /no line with the column titles reference, amount, status/)
  const named = [...from, '--columns', 'reference=narration']
  await says(named, /Known\s+1 payout confirmed before, 1 row repeated/)
  write(`${number};5,000.00;paid;FT3`, 'PAYAAAAAAAAAAAA;5;paid;FT4', 'x;y;z;')
  const { stdout } = await refuses(named, /3 rows of .*results\.csv were not applied/)
  for (const why of [/not Rs 5,000\.00/, /no payout has this number/, /not the number of a payout/])
    assert.match(stdout, why)
  await refuses([...from, '--columns', 'amounts=x'], /--columns names titles of reference, amount/, 2)
  await refuses(['paid', '--from', `${file}.gone`, ...byThere()], /There is no such file/)
})

it('compares a bank statement with what was confirmed', async () => {
  const { number } = await transferOf(payoutId)
  const file = join(books.market.bed.testDatabase.folder, 'statement.csv')
  const write = (...rows: string[]) =>
    writeFileSync(file, ['reference,credit,debit,description', ...rows, ''].join('\n'))
  write('FT 1,6187.37,,', `FT3,,5624.88,${number}`)
  await says(['reconcile', file, ...by()], /2 rows, 0 rows about nothing of ours; 2 compared, 0 differ/)
  write(`FT3,,5624.88,${number}`, `FT9,5624.88,,RETURN ${number}`)
  const { stdout } = await refuses(['reconcile', file, ...by()], /2 differ; see "affiliate flagged list"/)
  assert.match(stdout, /the money came back/)
  assert.match(stdout, /confirmed, and not in the statement/)
})

it.run()
