// database: none
// long

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { ENTRY, type RunningAffiliate, runAffiliate, startAffiliate } from '../test/run-affiliate.ts'
import { runHere } from '../test/run-here.ts'

const folder = mkdtempSync(join(tmpdir(), 'affiliate-serve-'))
const settings = {
  ...{ HOST: '127.0.0.1', PORT: '0', SCHEDULE_BILLING: 'off', SCHEDULE_PAYOUTS: 'off', LOG_LEVEL: 'warn' },
  DATABASE_URL: `sqlite:${join(folder, 'affiliate.db')}`,
}
/** The entry of containers. */
const MAIN = fileURLToPath(new URL('../../server/main.ts', import.meta.url))
const OTHER_KEY = Buffer.alloc(32, 9).toString('base64')
/** A path, which is not broken. */
const LONG_WORD = /\S{41}/

const running = new Set<ChildProcess>()
/** A server in this folder, once it has printed `last`. */
async function startServer(place: string, args: string[], last: string, more = {}, entry = ENTRY) {
  const served = startAffiliate(args, { folder: place, environment: { ...settings, ...more }, entry })
  running.add(served.child)
  await served.until(() => served.printed.stdout.includes(last))
  return served
}
/** In its working folder. */
const OWN_PLACES = { DATA_DIR: 'data', DATABASE_URL: 'sqlite:data/affiliate.db' }

let server: RunningAffiliate
// biome-ignore lint/suspicious/noExplicitAny: what it says once it listens
let announcement: any

test.before(async () => {
  server = await startServer(folder, ['serve', '--json'], '\n')
  announcement = JSON.parse(server.printed.stdout)
})

test.after(() => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

test('serve says where everything is', async () => {
  assert.match(announcement.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  assert.is(announcement.database, join(folder, 'affiliate.db'))
  assert.ok(announcement.migrated.length > 0)
  for (const address of [announcement.openapi_url, `${announcement.url}/readyz`])
    assert.is((await fetch(address)).status, 200)
})

test('a port in use, another key and a wrong setting end the start with one line, and nothing is written', async () => {
  const fresh = join(folder, 'fresh')
  const PORT = new URL(announcement.url).port
  const places = { DATA_DIR: fresh, DATABASE_URL: `sqlite:${join(fresh, 'a.db')}` }
  const ends = await Promise.all([
    runAffiliate(['serve', '--seed'], { environment: { ...settings, ...places, PORT }, folder }),
    runHere(['serve'], { ...settings, DATA_DIR: folder, APP_KEY: OTHER_KEY }, { folder }),
    runHere(['serve'], { ...settings, APP_KEY: '', PORT: 'http' }, { folder }),
  ])
  for (const [at, why] of [
    /^affiliate: 127\.0\.0\.1:\d+ is in use already\. Set PORT to another one\.\n$/,
    /^affiliate: setting APP_KEY: is not the key that this database was sealed with .*: set that key, .*\n$/,
    /^affiliate: setting PORT: must be a whole number from 0 to 65535\n$/,
  ].entries()) {
    assert.equal([ends[at]?.code, ends[at]?.stdout], [1, ''])
    assert.match(ends[at]?.stderr ?? '', why)
  }
  assert.not.ok(existsSync(fresh))
})

test('in a container, SIGTERM makes it unready first, it serves on for DRAIN_SECONDS, and then ends', async () => {
  const own = mkdtempSync(join(tmpdir(), 'affiliate-drain-'))
  const more = { ...OWN_PLACES, DRAIN_SECONDS: '1' }
  const { child, printed, ended } = await startServer(own, ['--json'], '\n', more, MAIN)
  const { url } = JSON.parse(printed.stdout)
  const ready = () => fetch(`${url}/readyz`)
  assert.is((await ready()).status, 200)
  child.kill('SIGTERM')
  let answer = await ready()
  while (answer.status === 200) answer = await ready()
  assert.is(answer.status, 503)
  assert.match(await answer.text(), /about to stop/)
  const served = await fetch(`${url}/offers`)
  assert.equal([served.status, served.headers.get('connection')], [200, 'close'])
  const { code, stderr } = await ended
  assert.is(code, 0)
  // The probe's refusal is all that it has logged.
  assert.match(stderr, /^\{.*"route":"\/readyz","status":503.*\}\n$/)
  rmSync(own, { recursive: true })
})

test('the first signal drains, a second one ends it at once', async () => {
  const port = Number(new URL(announcement.url).port)
  // A request that never ends: what a polite stop waits for.
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  await once(socket, 'connect')
  socket.write('POST /auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{')
  server.child.kill('SIGTERM')
  // npm passes on what the terminal has sent already: the two are one.
  server.child.kill('SIGTERM')
  await eventually(async () => {
    const probe = connect(port, '127.0.0.1')
    const [error] = await Promise.race([once(probe, 'error'), once(probe, 'connect').then(() => [null])])
    probe.destroy()
    return error !== null
  })
  assert.is(server.child.exitCode, null)
  // What comes too soon after the first one still counts as the same.
  await eventually(() => {
    server.child.kill('SIGINT')
    return server.child.exitCode !== null
  })
  assert.is((await server.ended).code, 130)
  socket.destroy()
})

test('the banner says what to do next, and a service whose folder was deleted still ends, and says so', async () => {
  const own = mkdtempSync(join(tmpdir(), 'affiliate-deleted-'))
  const { child, printed, ended } = await startServer(own, ['serve'], '--help', OWN_PLACES)
  for (const said of [
    /Service +http:\/\/127\.0\.0\.1:\d+\n/,
    /Portal +http:\/\/127\.0\.0\.1:\d+\/app\n/,
    /Sandbox processor +http:/,
    /npm run demo\n/,
  ])
    assert.match(printed.stdout, said)
  for (const line of printed.stdout.split('\n')) assert.ok(line.length <= 80 || LONG_WORD.test(line), line)
  rmSync(own, { recursive: true })
  child.kill('SIGTERM')
  const { code, stderr } = await ended
  assert.is(code, 1)
  assert.match(
    stderr,
    /setting DATA_DIR: data was deleted while the service ran; what it wrote there is lost/,
  )
  assert.not.ok(existsSync(own))
})

test('a seeded service begins with the portal and the accounts, also when it is started again', async () => {
  const own = mkdtempSync(join(tmpdir(), 'affiliate-seeded-'))
  const accounts: string[] = []
  for (const _ of ['seeded', 'started again']) {
    const { child, printed, ended } = await startServer(own, ['serve', '--seed'], 'Data:', OWN_PLACES)
    const [, , open = '', account = ''] = printed.stdout.split('\n')
    assert.match(open, /^ {2}open +http:\/\/127\.0\.0\.1:\d+\/app$/)
    assert.match(account, /^ {2}merchant +owner@/)
    accounts.push(account)
    const shop = /practice shop +(\S+)/.exec(printed.stdout)?.[1] ?? ''
    assert.match(await (await fetch(shop)).text(), /href="\/go\/\w+"/)
    child.kill('SIGTERM')
    assert.is((await ended).code, 0)
  }
  assert.is(accounts[0], accounts[1])
  rmSync(own, { recursive: true })
})

test.run()
