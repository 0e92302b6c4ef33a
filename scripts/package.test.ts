// proof only
// database: none
import { execFile, execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startServing } from '../cli/test/run-affiliate.ts'
import { assertNone } from '../server/test/testkit/pluck.ts'
import { describePackages } from './describe-packages.ts'
import { packService } from './package.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')

interface Packed {
  folder: string
  /** The root of a project that has the package installed. */
  project: string
  files: { path: string; size: number }[]
}

const it = suite<Packed>('the package')

it.before(async (world) => {
  world.folder = fs.mkdtempSync(join(tmpdir(), 'affiliate-package-'))
  world.project = join(world.folder, 'project')
  await install(world.project, packService(world.folder))
  const own = join(world.project, 'node_modules/affiliate-marketplace')
  world.files = fs
    .globSync('**/*', { cwd: own })
    .map((path) => ({ path, stats: fs.statSync(join(own, path)) }))
    .filter(({ stats }) => stats.isFile())
    .map(({ path, stats }) => ({ path, size: stats.size }))
})
it.after(({ folder }) => fs.rmSync(folder, { recursive: true, force: true }))

/** As npm would: the package unpacked, its dependencies beside it; those of this repository stand in for the registry's. */
async function install(project: string, tarball: string): Promise<void> {
  const modules = join(project, 'node_modules')
  const own = join(modules, 'affiliate-marketplace')
  fs.mkdirSync(own, { recursive: true })
  await run('tar', ['-xzf', tarball, '-C', own, '--strip-components=1'])
  const { dependencies } = JSON.parse(fs.readFileSync(join(own, 'package.json'), 'utf8'))
  for (const name of Object.keys(dependencies)) {
    fs.mkdirSync(dirname(join(modules, name)), { recursive: true })
    fs.symlinkSync(join(MODULES, name), join(modules, name))
  }
  fs.writeFileSync(join(project, 'package.json'), '{ "type": "module" }')
}

it('holds what is needed to run, and no tests, sources or secrets', ({ files }) => {
  const paths = files.map(({ path }) => path)
  for (const path of ['README.md', 'LICENSE', 'package.json', 'cli/affiliate.mjs', 'dist/cli/main.js'])
    assert.ok(paths.includes(path), path)
  // Nothing imports the start of a thread, so what follows imports may pass it by.
  const threads = fs.globSync('server/**/*-thread.ts', { cwd: ROOT })
  assert.ok(threads.length >= 1)
  for (const thread of threads) assert.ok(paths.includes(`dist/${thread.replace(/ts$/, 'js')}`), thread)
  const stray = paths.filter((path) => /(\.test\.|testbed|testing|\.ts$|\.env|\.key$|\.db)/.test(path))
  assert.equal(stray, [])
  assert.ok(files.reduce((sum, { size }) => sum + size, 0) < 5_000_000)
})

it('runs the whole service where it is installed', async ({ project, folder }) => {
  const own = join(project, 'node_modules/affiliate-marketplace')
  const { bin } = JSON.parse(fs.readFileSync(join(own, 'package.json'), 'utf8'))
  const service = await startServing(['serve', '--json'], {
    entry: join(own, bin.affiliate),
    folder,
    environment: { PORT: '0', LOG_LEVEL: 'warn' },
  })
  const { url } = service.document
  try {
    assert.is((await fetch(`${url}/readyz`)).status, 200)
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as { info: { version: string } }
    assert.is(document.info.version, JSON.parse(fs.readFileSync(join(ROOT, 'package.json'), 'utf8')).version)
    assert.is((await fetch(`${url}/docs/swagger-ui-bundle.js`)).status, 200)
    assert.is((await fetch(`${url}/docs/guides/settings`)).status, 200)
    assert.match(await (await fetch(`${url}/store.js`)).text(), /affiliateReference/)
    const client = join(folder, 'client')
    fs.mkdirSync(client)
    fs.writeFileSync(`${client}.tgz`, Buffer.from(await (await fetch(`${url}/client.tgz`)).arrayBuffer()))
    await run('tar', ['-xzf', `${client}.tgz`, '-C', client, '--strip-components=1'])
    const { name, version } = JSON.parse(fs.readFileSync(join(client, 'package.json'), 'utf8'))
    assert.equal([name, version], ['affiliate-marketplace-client', document.info.version])
  } finally {
    service.child.kill('SIGTERM')
    assert.is((await service.ended).code, 0)
  }
})

it('has checksums that verify, and a bill of all that the service needs at run time', () => {
  const folder = fs.mkdtempSync(join(tmpdir(), 'affiliate-packages-'))
  const json = (path: string) => JSON.parse(fs.readFileSync(path, 'utf8'))
  try {
    fs.writeFileSync(join(folder, 'some.tgz'), 'a tarball')
    describePackages(ROOT, folder)
    const { name, version } = json(join(ROOT, 'package.json'))
    const file = `${name}-${version}.cdx.json`
    const verified = execFileSync('sha256sum', ['-c', 'SHA256SUMS'], { cwd: folder, encoding: 'utf8' })
    assert.is(verified, `${file}: OK\nsome.tgz: OK\n`)
    type Part = { name: string; version: string; hashes?: unknown[] }
    const { bomFormat, metadata, components } = json(join(folder, file))
    assert.equal([bomFormat, metadata.component.name], ['CycloneDX', name])
    const listed = (components as Part[]).map((part) => `${part.name}@${part.version}`)
    const locked = json(join(ROOT, 'package-lock.json')).packages as Record<string, Part & { dev?: boolean }>
    const needed = Object.entries(locked).filter(([path, { dev }]) => path !== '' && !dev)
    const names = needed.map(
      ([path, one]) => `${one.name ?? path.split('node_modules/').at(-1)}@${one.version}`,
    )
    assert.equal([...new Set(listed)].sort(), [...new Set(names)].sort())
    assertNone(components as Part[], ({ hashes }) => !hashes?.length)
    assert.not.ok(fs.readFileSync(join(folder, file), 'utf8').includes(ROOT))
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
})

it.run()
