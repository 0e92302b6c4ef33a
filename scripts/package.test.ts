// proof only
// time limit: 300 s
// database: none
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openWebTestbed } from '../server/test/testkit/web.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')

/** A program that uses the package and nothing else of this repository. */
const CALLER = `import {
  createClient,
  formatMoney,
  type Inputs,
  isRefusal,
  type Outputs,
  parseMoney,
  type Problem,
  problemIn,
} from 'affiliate-marketplace/client'

const url = process.env.SERVICE_URL ?? ''
const visitor = createClient({ url })
const account = { password: 'a long passphrase', display_name: 'From outside' }
const merchant = await visitor.auth.register.mutate({ ...account, email: 'm@example.pk', role: 'merchant' })
const creator = await visitor.auth.register.mutate({ ...account, email: 'c@example.pk', role: 'creator' })
const selling = createClient({ url: \`\${url}/\`, token: merchant.token })
const applying = createClient({ url, token: () => creator.token })

const terms: Inputs['offers']['create'] = {
  title: 'Brass lamp',
  product_url: 'https://shop.pk/products/lamp',
  category: 'Home',
  niche: 'Lamps',
  commission_rate: 12.5,
}
const offer: Outputs['offers']['create'] = await selling.offers.create.mutate(terms)
await selling.stores.connect.mutate({ shop_domain: 'outside.myshopify.com', webhook_secret: 'a-webhook-secret' })
const early = await applying.applications.apply.mutate({ id: offer.id }).catch((error: unknown) => error)
const problem: Problem | null = problemIn(early)
await selling.offers.setStatus.mutate({ id: offer.id, status: 'live' })
const application = await applying.applications.apply.mutate({ id: offer.id, message: 'Hello' })
const [listed, me] = await Promise.all([visitor.offers.list.query({}), applying.users.me.query({})])
const stranger = await visitor.users.me.query({}).catch((error: unknown) => isRefusal(error, 'unauthenticated'))

const live = await new Promise<string>((resolve, reject) => {
  const subscription = selling.live.changes.subscribe(undefined, {
    onData({ data }) {
      subscription.unsubscribe()
      resolve(data.kind)
    },
    onError: reject,
  })
})

// @ts-expect-error a rate is a number
terms.commission_rate = '12.5'
// @ts-expect-error there is no such procedure
void visitor.offers.burn
// @ts-expect-error there is no such code
isRefusal(early, 'no_such_code')

console.log(
  JSON.stringify({
    offer: offer.status,
    early: problem?.code,
    application: application.status,
    titles: listed.items.map(({ title }) => title),
    me: me.role,
    stranger,
    live,
    money: formatMoney(parseMoney('1250') ?? 0),
  }),
)
`

interface Packed {
  folder: string
  /** The root of a project that has the package installed. */
  project: string
  files: { path: string; size: number }[]
}

const it = suite<Packed>('the package')

it.before(async (world) => {
  world.folder = mkdtempSync(join(tmpdir(), 'affiliate-package-'))
  world.project = join(world.folder, 'project')
  const args = ['pack', '--ignore-scripts=false', '--json', '--silent', '--pack-destination', world.folder]
  const { stdout } = await run('npm', args, { cwd: ROOT, maxBuffer: 16 * 1024 * 1024 })
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('['))) as {
    filename: string
    files: Packed['files']
  }[]
  assert.ok(packed)
  world.files = packed.files
  await install(world.project, join(world.folder, packed.filename))
})
it.after(({ folder }) => rmSync(folder, { recursive: true, force: true }))

/** As npm would: the package unpacked, its dependencies beside it; those of this repository stand in for the registry's. */
async function install(project: string, tarball: string): Promise<void> {
  const modules = join(project, 'node_modules')
  const own = join(modules, 'affiliate-marketplace')
  mkdirSync(own, { recursive: true })
  await run('tar', ['-xzf', tarball, '-C', own, '--strip-components=1'])
  const { dependencies } = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'))
  for (const name of [...Object.keys(dependencies), '@types/node']) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(MODULES, name), join(modules, name))
  }
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(project, 'caller.ts'), CALLER)
  const compilerOptions = {
    strict: true,
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
    outDir: 'out',
    rootDir: '.',
  }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['caller.ts'] }))
}

async function compile(project: string, compiler: string): Promise<string> {
  const args = [join(MODULES, compiler, 'bin', 'tsc'), '--project', project]
  return run(process.execPath, args).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  )
}

it('holds what is needed to run, and no tests, sources or secrets', ({ files, project }) => {
  const paths = files.map(({ path }) => path)
  for (const path of ['README.md', 'LICENSE', 'package.json', 'cli/affiliate.mjs', 'dist/shared/client.d.ts'])
    assert.ok(paths.includes(path), path)
  // Nothing imports the start of a thread, so what follows imports may pass it by.
  const threads = globSync('server/**/*-thread.ts', { cwd: ROOT })
  assert.ok(threads.length >= 1)
  for (const thread of threads) assert.ok(paths.includes(`dist/${thread.replace(/ts$/, 'js')}`), thread)
  const stray = paths.filter((path) =>
    /(\.test\.|testbed|testing|(?<!\.d)\.ts$|\.env|\.key$|\.db)/.test(path),
  )
  assert.equal(stray, [])
  const declarations = paths.filter((path) => path.endsWith('.d.ts') && path.startsWith('dist/server'))
  assert.equal(declarations, ['dist/server/http/router.d.ts'])
  assert.ok(files.reduce((sum, { size }) => sum + size, 0) < 5_000_000)
  assert.ok(existsSync(join(project, 'node_modules/affiliate-marketplace/dist/shared/client.js')))
})

for (const compiler of ['typescript', 'typescript-5'])
  it(`gives another project types that compile in strict mode with ${compiler}, its libraries checked too`, async ({
    project,
  }) => {
    assert.is(await compile(project, compiler), '')
  })

it('gives another project a client that calls the service', async ({ project }) => {
  const bed = await openWebTestbed('sqlite')
  try {
    const { stdout } = await run(process.execPath, [join(project, 'out/caller.js')], {
      env: { ...process.env, SERVICE_URL: bed.base },
    })
    assert.equal(JSON.parse(stdout), {
      offer: 'draft',
      early: 'not_found',
      application: 'pending',
      titles: ['Brass lamp'],
      me: 'creator',
      stranger: true,
      live: 'start',
      money: '1250.00',
    })
  } finally {
    await bed.close()
  }
})

it('loads nothing of the server with the client', async ({ project }) => {
  const loader = `import { registerHooks } from 'node:module'
    registerHooks({ load(url, context, next) { console.log(url); return next(url, context) } })
    await import('affiliate-marketplace/client')`
  writeFileSync(join(project, 'loaded.js'), loader)
  const { stdout } = await run(process.execPath, [join(project, 'loaded.js')])
  const own = stdout.split('\n').filter((url) => url.includes('/affiliate-marketplace/'))
  assert.ok(own.length >= 2)
  assert.equal(
    own.filter((url) => !url.includes('/affiliate-marketplace/dist/shared/')),
    [],
  )
})

it('runs the whole service where it is installed', async ({ project, folder }) => {
  const own = join(project, 'node_modules/affiliate-marketplace')
  const { bin } = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'))
  const service = spawn(process.execPath, [join(own, bin.affiliate), 'serve', '--json'], {
    cwd: folder,
    env: { PATH: process.env.PATH, PORT: '0', LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const { url } = await firstDocument(service)
    assert.is((await fetch(`${url}/readyz`)).status, 200)
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as { info: { version: string } }
    assert.is(document.info.version, JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version)
    assert.is((await fetch(`${url}/docs/swagger-ui-bundle.js`)).status, 200)
    assert.match(await (await fetch(`${url}/store.js`)).text(), /affiliateReference/)
  } finally {
    service.kill('SIGTERM')
    const [code] = service.exitCode === null ? await once(service, 'exit') : [service.exitCode]
    assert.is(code, 0)
  }
})

/** The JSON document that `serve --json` prints once it listens. */
async function firstDocument(service: ChildProcess): Promise<{ url: string }> {
  if (!service.stdout) throw new Error('its output is not read')
  let text = ''
  for await (const line of createInterface(service.stdout)) {
    text += line
    try {
      return JSON.parse(text)
    } catch {
      // The document goes on in the next line.
    }
  }
  throw new Error(`the service ended: ${text}`)
}

it.run()
