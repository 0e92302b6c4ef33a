// database: none
// long

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { ENTRY, environmentOf, runAffiliate, startAffiliate } from '../test/run-affiliate.ts'
import { runHere } from '../test/run-here.ts'

const folder = mkdtempSync(join(tmpdir(), 'affiliate-serve-'))
const settings = {
  HOST: '127.0.0.1',
  PORT: '0',
  DATABASE_URL: `sqlite:${join(folder, 'affiliate.db')}`,
  SCHEDULE_BILLING: 'off',
  SCHEDULE_PAYOUTS: 'off',
  LOG_LEVEL: 'warn',
}
/** The entry of containers. */
const MAIN = fileURLToPath(new URL('../../server/main.ts', import.meta.url))
const OTHER_KEY = Buffer.alloc(32, 9).toString('base64')
const running = new Set<ChildProcess>()

interface Served {
  child: ChildProcess
  url: string
  announcement: {
    url: string
    sandbox_url: string
    openapi_url: string
    database: string
    migrated: string[]
  }
  ended: Promise<{ code: number | null; stderr: string }>
}

/** Starts a server and waits until it says where it listens. */
async function startServer(args: readonly string[], more: Record<string, string> = {}): Promise<Served> {
  const child = spawn(process.execPath, args, { cwd: folder, env: environmentOf({ ...settings, ...more }) })
  running.add(child)
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = once(child, 'close').then(([code]) => {
    running.delete(child)
    return { code: code as number | null, stderr }
  })
  let stdout = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    stdout += chunk
    if (stdout.includes('\n')) break
  }
  assert.ok(stdout, `the server did not start: ${stderr}`)
  const announcement = JSON.parse(stdout)
  return { child, url: announcement.url, announcement, ended }
}

/** A connection whose request never ends: what a polite stop would wait for. */
async function hangOn(url: string) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(
    'POST /auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  )
  return socket
}

let server: Served

test.before(async () => {
  server = await startServer([ENTRY, 'serve', '--json'])
})

test.after(() => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

test('serve says where everything is', async () => {
  const { announcement } = server
  assert.match(announcement.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  assert.is(announcement.database, join(folder, 'affiliate.db'))
  assert.ok(announcement.migrated.length > 0)
  assert.is((await fetch(announcement.openapi_url)).status, 200)
  assert.is((await fetch(`${announcement.url}/readyz`)).status, 200)
})

test('a port in use, another key and a wrong setting end the start with one line, and nothing is written', async () => {
  const fresh = {
    PORT: new URL(server.url).port,
    DATA_DIR: join(folder, 'fresh'),
    DATABASE_URL: `sqlite:${join(folder, 'fresh', 'a.db')}`,
  }
  const [used, otherKey, wrong] = await Promise.all([
    runAffiliate(['serve', '--seed'], { environment: { ...settings, ...fresh }, folder }),
    runHere(['serve'], { ...settings, DATA_DIR: folder, APP_KEY: OTHER_KEY }, { folder }),
    runHere(['serve'], { ...settings, APP_KEY: '', PORT: 'http' }, { folder }),
  ])
  assert.equal([used.code, used.stdout, wrong.code, wrong.stdout], [1, '', 1, ''])
  assert.match(used.stderr, /^affiliate: 127\.0\.0\.1:\d+ is in use already\. Set PORT to another one\.\n$/)
  assert.not.ok(existsSync(fresh.DATA_DIR))
  assert.equal([otherKey.code, otherKey.stdout], [1, ''])
  assert.match(
    otherKey.stderr,
    /^affiliate: setting APP_KEY: is not the key that this database was sealed with .*: set that key, .*\n$/,
  )
  assert.match(wrong.stderr, /^affiliate: setting PORT: must be a whole number from 0 to 65535\n$/)
})

test('in a container, SIGTERM makes it unready first, it serves on for DRAIN_SECONDS, and then ends', async () => {
  const own = mkdtempSync(join(tmpdir(), 'affiliate-drain-'))
  const places = { DATA_DIR: own, DATABASE_URL: `sqlite:${join(own, 'a.db')}`, DRAIN_SECONDS: '1' }
  const { child, url, ended } = await startServer([MAIN, '--json'], places)
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
  const socket = await hangOn(server.url)
  server.child.kill('SIGTERM')
  // npm passes on what the terminal has sent already: the two are one.
  server.child.kill('SIGTERM')
  const refused = async () => {
    const probe = connect(Number(new URL(server.url).port), '127.0.0.1')
    const [error] = await Promise.race([once(probe, 'error'), once(probe, 'connect').then(() => [null])])
    probe.destroy()
    return error !== null
  }
  await eventually(refused)
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
  const places = { DATA_DIR: 'data', DATABASE_URL: 'sqlite:data/affiliate.db' }
  const served = startAffiliate(['serve'], { folder: own, environment: { ...settings, ...places } })
  running.add(served.child)
  await served.until(() => served.printed.stdout.includes('--help'))
  assert.match(served.printed.stdout, /Service +http:\/\/127\.0\.0\.1:\d+\n/)
  assert.match(served.printed.stdout, /Portal +http:\/\/127\.0\.0\.1:\d+\/app\n/)
  assert.match(served.printed.stdout, /Sandbox processor +http:/)
  assert.match(served.printed.stdout, /npm run demo\n/)
  rmSync(own, { recursive: true })
  served.child.kill('SIGTERM')
  const { code, stderr } = await served.ended
  assert.is(code, 1)
  assert.match(
    stderr,
    /setting DATA_DIR: data was deleted while the service ran; what it wrote there is lost/,
  )
  assert.not.ok(existsSync(own))
})

test('a seeded service begins with the portal and the accounts, and has a practice shop', async () => {
  const own = mkdtempSync(join(tmpdir(), 'affiliate-seeded-'))
  const places = { DATA_DIR: 'data', DATABASE_URL: 'sqlite:data/affiliate.db' }
  const served = startAffiliate(['serve', '--seed'], { folder: own, environment: { ...settings, ...places } })
  running.add(served.child)
  await served.until(() => served.printed.stdout.includes('Data:'))
  const { stdout } = served.printed
  const [, , open = '', account = ''] = stdout.split('\n')
  assert.match(open, /^ {2}open +http:\/\/127\.0\.0\.1:\d+\/app$/)
  assert.match(account, /^ {2}merchant +owner@/)
  const shop = /practice shop +(\S+)/.exec(stdout)?.[1] ?? ''
  const link = /href="(\/go\/\w+)"/.exec(await (await fetch(shop)).text())?.[1]
  assert.match(await (await fetch(new URL(link ?? '', shop))).text(), /Buy and pay now/)
  served.child.kill('SIGTERM')
  assert.is((await served.ended).code, 0)
  const again = startAffiliate(['serve', '--seed'], { folder: own, environment: { ...settings, ...places } })
  running.add(again.child)
  await again.until(() => again.printed.stdout.includes('Data:'))
  assert.match(again.printed.stdout, account)
  again.child.kill('SIGTERM')
  assert.is((await again.ended).code, 0)
  rmSync(own, { recursive: true })
})

test('an old Node gets one line that says what is missing', () => {
  // The entry thinks that it runs on Node 20; that it holds nothing which Node 20 cannot read is seen in its text.
  const entry = JSON.stringify(pathToFileURL(ENTRY).href)
  const script = `Object.defineProperty(process.versions, 'node', { value: '20.20.2' }); await import(${entry})`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    env: environmentOf(),
    encoding: 'utf8',
  })
  assert.is(status, 1)
  assert.match(
    stderr,
    /^affiliate: this is Node\.js 20\.20\.2; 22\.19 or later is needed\. .*\.\/cli\/affiliate.*\n$/,
  )
  assert.not.match(readFileSync(ENTRY, 'utf8'), /^import /m)
})

test.run()
