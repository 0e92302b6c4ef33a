// database: none
import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseEnv, promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readConfig, SETTING_NAMES } from '../../server/platform/config.ts'
import { assertNone } from '../../server/test/testkit/pluck.ts'
import { filledExample, fillIn } from './filled-example.ts'
import { needsPrograms } from './needs-programs.ts'

const run = promisify(execFile)
const FOLDER = fileURLToPath(new URL('three-machines/', import.meta.url))
const textOf = (name: string) => readFileSync(join(FOLDER, name), 'utf8')
const node = () => parseEnv(textOf('node.env.example')) as Record<string, string>

const it = suite('the deployment on three machines')
const place = mkdtempSync(join(tmpdir(), 'affiliate-three-machines-'))
it.after(() => rmSync(place, { recursive: true }))

it('has settings that production accepts', () => {
  const example = fillIn(textOf('affiliate.env.example'))
  const own = parseEnv(example) as Record<string, string>
  const commented = parseEnv(example.replaceAll(/^#(?=[A-Z0-9_]+=)/gm, ''))
  assertNone(Object.keys(commented), (name) => !SETTING_NAMES.includes(name))
  const config = readConfig({ ...filledExample(), ...own })
  assert.ok(readConfig({ ...filledExample(), ...(commented as Record<string, string>) }).DATABASE_READ_URL)
  assert.equal([config.NODE_ENV, config.EXPORT_STORAGE, config.DRAIN_SECONDS], ['production', 's3', 5])
  const [, alternative] = /^# (postgres:.*)$/m.exec(example) ?? []
  assert.ok(readConfig({ ...filledExample(), ...own, DATABASE_URL: alternative ?? '' }))
})

it('names each machine everywhere, and every file in the guide', () => {
  const { NODE1 = '', NODE2 = '', NODE3 = '', ...others } = node()
  for (const address of [NODE1, NODE2, NODE3]) {
    for (const text of [others.ETCD_INITIAL_CLUSTER, others.PATRONI_ETCD3_HOSTS, textOf('keepalived.conf')]) {
      assert.ok(text?.includes(address), address)
    }
    assert.ok(textOf('affiliate.env.example').includes(address))
  }
  const guide = readFileSync(new URL('../../server/guides/high-availability.md', import.meta.url), 'utf8')
  for (const name of readdirSync(FOLDER)) assert.ok(guide.includes(`three-machines/${name}`), name)
})

needsPrograms(it, ['haproxy', 'openssl'], 'has an haproxy.cfg that HAProxy accepts', async () => {
  const [key, certificate, site] = ['key.pem', 'certificate.pem', 'site.pem'].map((name) => join(place, name))
  const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=test']
  await run('openssl', ['req', '-x509', ...options, '-keyout', `${key}`, '-out', `${certificate}`])
  writeFileSync(`${site}`, readFileSync(`${key}`, 'utf8') + readFileSync(`${certificate}`, 'utf8'))
  const file = join(place, 'haproxy.cfg')
  writeFileSync(file, textOf('haproxy.cfg').replaceAll('/etc/haproxy/site.pem', `${site}`))
  const { stdout, stderr } = await run('haproxy', ['-c', '-f', file], { env: { ...process.env, ...node() } })
  assert.match(stdout, 'Configuration file is valid')
  assert.not.match(stderr, 'WARNING')
})

needsPrograms(it, ['keepalived'], 'has a keepalived.conf that keepalived accepts', async () => {
  const file = join(place, 'keepalived.conf')
  // Version 2.2.7 ends itself with SIGTERM when it only tests a configuration whose scripts have another user.
  writeFileSync(file, textOf('keepalived.conf').replace(/script_user .*/, 'script_user root'))
  const { stdout, stderr } = await run('keepalived', ['-t', '-f', file])
  assert.is(stdout + stderr, '')
})

/** Debian 12 brings 3.0.2, which does not know these settings and must not be used with them. */
const patroni = spawnSync('patroni', ['--version'], { encoding: 'utf8' }).stdout ?? ''
const hasPatroni4 = Number(/(\d+)\./.exec(patroni)?.[1]) >= 4
if (hasPatroni4) it('has a patroni.yml that Patroni accepts', checkPatroni)
else it.skip('has a patroni.yml that Patroni accepts: Patroni 4 is not installed', () => {})

it.run()

async function checkPatroni(): Promise<void> {
  // It asks whether etcd listens where the settings say.
  const etcd = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  try {
    await once(etcd, 'listening')
    const bin = '/usr/lib/postgresql'
    const file = join(place, 'patroni.yml')
    const text = textOf('patroni.yml')
      .replace(/bin_dir: .*/, `bin_dir: ${bin}/${readdirSync(bin).at(-1)}/bin`)
      .replace(/data_dir: .*/, `data_dir: ${join(place, 'data')}`)
    writeFileSync(file, text)
    const PATRONI_ETCD3_HOSTS = `127.0.0.1:${(etcd.address() as { port: number }).port}`
    const env = { ...process.env, ...node(), PATRONI_ETCD3_HOSTS }
    const check = run('patroni', ['--validate-config', '--ignore-listen-port', file], { env })
    const { stdout, stderr } = await check.catch((error: { stdout: string; stderr: string }) => error)
    // Versions up to 4.1.4 take this documented value, but their validator does not know it.
    const known = /synchronous_mode quorum is not a boolean|^$/
    assertNone(`${stdout}${stderr}`.split('\n'), (line) => !known.test(line))
  } finally {
    etcd.close()
  }
}
