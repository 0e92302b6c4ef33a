// proof only
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase } from '../../server/test/testkit/databases.ts'
import { openNotifySocket } from '../../server/test/testkit/notify-socket.ts'
import { freePort } from '../testing/postgres-server.ts'
import { filledExample } from './filled-example.ts'
import { needsPrograms } from './needs-programs.ts'

const run = promisify(execFile)
const HERE = fileURLToPath(new URL('.', import.meta.url))
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** What the units were given on a scale from 0 (safe) to 10. */
const MOST_EXPOSURE = 2

const it = suite('the deployment pack')
const folder = mkdtempSync(join(tmpdir(), 'affiliate-deployment-'))
it.after(() => rmSync(folder, { recursive: true, force: true }))

needsPrograms(it, ['promtool'], 'has alert rules that are valid and fire when they must', async () => {
  await run('promtool', ['check', 'rules', join(HERE, 'alerts.yml')])
  await run('promtool', ['test', 'rules', join(HERE, 'alerts.test.yml')])
})

needsPrograms(it, ['systemd-analyze'], 'has units that systemd accepts, with little exposure', async () => {
  const units = join(folder, 'units')
  mkdirSync(units)
  for (const name of readdirSync(HERE).filter((file) => /\.(service|timer)$/.test(file))) {
    // Only programs that exist are accepted.
    const unit = readFileSync(join(HERE, name), 'utf8').replaceAll('/opt/affiliate/', ROOT)
    writeFileSync(join(units, name), unit)
    if (name === 'affiliate.service') writeFileSync(join(units, 'affiliate@web.service'), unit)
  }
  cpSync(join(HERE, 'affiliate@.service.d'), join(units, 'affiliate@.service.d'), { recursive: true })
  const files = readdirSync(units).filter((name) => /\.(service|timer)$/.test(name))
  const names = ['-backup.service', '-backup.timer', '.service', '@web.service']
  assert.equal(
    files.sort(),
    names.map((name) => `affiliate${name}`),
  )
  const paths = files.map((name) => join(units, name))
  const { stderr } = await run('systemd-analyze', ['verify', '--man=no', ...paths])
  // What it prints of other units of this machine is not ours.
  assert.not.match(stderr, /affiliate/)
  for (const path of paths.filter((name) => name.endsWith('.service'))) {
    const { stdout } = await run('systemd-analyze', ['security', '--offline=true', '--no-pager', path])
    const exposure = Number(/Overall exposure level .*: ([\d.]+)/.exec(stdout)?.[1])
    assert.ok(exposure <= MOST_EXPOSURE, `${path}: ${exposure}`)
  }
})

it('backs up, verifies and keeps the newest; a drill that fails is an error and no backup', async () => {
  const data = join(folder, 'data')
  const backups = join(folder, 'backups')
  mkdirSync(backups)
  const figures = join(folder, 'affiliate.prom')
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: `sqlite:${join(data, 'affiliate.db')}`,
    BACKUP_DIR: backups,
    BACKUP_KEEP: '2',
    BACKUP_METRICS: figures,
  }
  await run(join(ROOT, 'cli/affiliate'), ['seed'], { env })
  for (const name of ['affiliate-20200101T000000Z.backup', 'affiliate-20200102T000000Z.backup']) {
    writeFileSync(join(backups, name), '')
  }
  await run(join(HERE, 'backup.sh'), [], { env })
  const kept = readdirSync(backups).sort()
  assert.is(kept.length, 2, kept.join())
  assert.is(kept[0], 'affiliate-20200102T000000Z.backup')
  const made = readFileSync(figures, 'utf8')
  const verified = Number(/^affiliate_backup_verified_timestamp_seconds (\d+)$/m.exec(made)?.[1])
  assert.ok(Math.abs(verified - Date.now() / 1000) < 120, made)
  assert.ok(Number(/^affiliate_backup_bytes (\d+)$/m.exec(made)?.[1]) > 100_000, made)

  // Another key than the one of the backup's journal.
  const wrong = { ...env, APP_KEY: Buffer.alloc(32, 3).toString('base64') }
  const { code, stderr } = await run(join(HERE, 'backup.sh'), [], { env: wrong }).then(
    () => ({ code: 0, stderr: '' }),
    (error: { code: number; stderr: string }) => error,
  )
  assert.is(code, 1)
  assert.match(stderr, /^affiliate: setting APP_KEY: [^\n]*\n$/)
  const after = readdirSync(backups).filter((name) => name.endsWith('.backup'))
  assert.equal(after.sort(), kept)
  assert.is(readFileSync(figures, 'utf8'), made)
})

needsPrograms(
  it,
  ['caddy', 'systemd-notify', 'python3'],
  'runs in production with the example settings, behind Caddy, watched by systemd',
  async () => {
    const database = await openTestDatabase('postgresql')
    const notifications = await openNotifySocket(folder)
    const port = await freePort()
    const children: ChildProcess[] = []
    try {
      const service = spawn(join(ROOT, 'cli/affiliate'), ['serve'], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: process.env.PATH,
          ...filledExample(),
          DATABASE_URL: database.url,
          DATA_DIR: join(folder, 'production'),
          PORT: String(port),
          NOTIFY_SOCKET: notifications.path,
          WATCHDOG_USEC: '400000',
        },
      })
      children.push(service)
      const [banner, log] = [text(service.stdout), text(service.stderr)]
      await notifications.until('READY=1')
      await notifications.until('WATCHDOG=1')
      const caddy = await startCaddy(children, port)
      await checkProxy(caddy, port)
      service.kill('SIGTERM')
      await notifications.until('STOPPING=1')
      assert.equal(await once(service, 'exit'), [0, null], await log)
      assert.match(await banner, /affiliate doctor\n/)
      assert.not.match(await banner, /npm run demo/)
    } finally {
      for (const child of children) await end(child)
      await notifications.close()
      await database.close()
    }
  },
)

async function checkProxy(caddy: number, service: number): Promise<void> {
  const ready = await ask(caddy, '/readyz')
  assert.equal([ready.status, JSON.parse(ready.text).environment], [200, 'production'])
  const headers = { authorization: `Bearer ${filledExample().METRICS_TOKEN}` }
  for (const path of ['/metrics', '/metrics/', '//metrics', '/%6Detrics', '/METRICS', '/x/../metrics'])
    assert.is((await ask(caddy, path, { headers })).status, 404, path)
  assert.is((await ask(service, '/metrics', { headers })).status, 200)
  for (const encoding of ['gzip', 'zstd']) {
    const answer = await ask(caddy, '/openapi.json', { headers: { 'accept-encoding': encoding } })
    assert.is(answer.headers['content-encoding'], encoding)
  }
  const body = Buffer.alloc(3 * 1024 * 1024, 0x20)
  const large = await ask(caddy, '/webhooks/store-sales', { method: 'POST', body })
  // Which of them depends on the version of Caddy.
  assert.ok(large.status === 413 || large.status === 502, `${large.status}`)

  // Each visitor is counted by its own address, whatever it claims.
  const logIn = (localAddress: string, claimed: number) =>
    ask(caddy, '/auth/login', {
      method: 'POST',
      localAddress,
      body: Buffer.from('{"email":"visitor@example.pk","password":"a wrong passphrase"}'),
      headers: { 'content-type': 'application/json', 'x-forwarded-for': `203.0.113.${claimed}` },
    })
  const statuses: (number | undefined)[] = []
  for (let times = 0; times < 21; times += 1) statuses.push((await logIn('127.0.0.2', times)).status)
  assert.equal([statuses[0], statuses.at(-1)], [401, 429])
  assert.is((await logIn('127.0.0.3', 0)).status, 401)
}

async function ask(
  port: number,
  path: string,
  { body, ...options }: RequestOptions & { body?: Buffer } = {},
) {
  const sent = request({ host: '127.0.0.1', port, path, agent: false, ...options }).end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: answer.statusCode, headers: answer.headers, text: await text(answer) }
}

/** Caddy with the pack's Caddyfile, over plain HTTP on a free port. */
async function startCaddy(children: ChildProcess[], upstream: number): Promise<number> {
  const port = await freePort()
  const caddyfile = join(folder, 'Caddyfile')
  // No administration port: another Caddy may have it.
  const own = readFileSync(join(HERE, 'Caddyfile'), 'utf8').replace(/^\{\n/m, '{\n\tadmin off\n')
  writeFileSync(caddyfile, own)
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    XDG_DATA_HOME: join(folder, 'caddy'),
    XDG_CONFIG_HOME: join(folder, 'caddy'),
    SITE_ADDRESS: `http://127.0.0.1:${port}`,
    AFFILIATE_UPSTREAM: `127.0.0.1:${upstream}`,
  }
  await run('caddy', ['validate', '--adapter', 'caddyfile', '--config', caddyfile], { env })
  const caddy = spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', caddyfile], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  children.push(caddy)
  for await (const line of createInterface(caddy.stderr)) {
    if (line.includes('serving initial configuration')) {
      caddy.stderr.resume()
      return port
    }
  }
  throw new Error('Caddy ended')
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

it.run()
