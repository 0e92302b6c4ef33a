// proof only
// database: none
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import ts from 'typescript-5'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startServing } from '../cli/test/run-affiliate.ts'
import { runHere } from '../cli/test/run-here.ts'
import { hasChromium, launchChromium } from '../server/test/testkit/browsers.ts'
import { GIVE_UP_MS } from '../server/test/testkit/eventually.ts'
import { pluck } from '../server/test/testkit/pluck.ts'
import { call } from '../server/test/testkit/service-bed.ts'
import { packClient } from './package.ts'
import { compile, npmInstall, registryAnswers, run } from './testing/npm.ts'
import { freePort } from './testing/postgres-server.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')
const CLIENT = join(ROOT, 'shared', 'client')
const NAME = 'affiliate-marketplace-client'

/** Where a picture of the example page is left for people to look at; none unless set. */
const SCREENSHOT = process.env.CLIENT_SCREENSHOT

/** The releases on which the client must run, with the version to install if this machine has none. */
const NODES = { 20: '20.20.2', 22: '22.23.3', 24: '24.21.0' }

/** tsc complains that it cannot rewrite an import by an absolute path. */
const ABSOLUTE_TS_IMPORT = 2877

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
  type RejectionReason,
  type Sale,
} from 'affiliate-marketplace-client'

const [url = '', run = ''] = process.argv.slice(2)
const visitor = createClient({ url })
const account = { password: 'a long passphrase', display_name: 'From outside' }
const merchant = await visitor.auth.register.mutate({ ...account, email: \`m\${run}@example.pk\`, role: 'merchant' })
const creator = await visitor.auth.register.mutate({ ...account, email: \`c\${run}@example.pk\`, role: 'creator' })
const selling = createClient({ url: \`\${url}/\`, token: merchant.token })
const applying = createClient({ url, token: () => creator.token })

const terms: Inputs['offers']['create'] = {
  title: \`Brass lamp \${run}\`,
  product_url: 'https://shop.pk/products/lamp',
  category: 'Home',
  niche: 'Lamps',
  commission_rate: 12.5,
}
const offer: Outputs['offers']['create'] = await selling.offers.create.mutate(terms)
await selling.stores.connect.mutate({ shop_domain: \`outside-\${run}.myshopify.com\`, webhook_secret: \`a-webhook-secret-\${run}\` })
const early = await applying.applications.apply.mutate({ id: offer.id }).catch((error: unknown) => error)
const problem: Problem | null = problemIn(early)
await selling.offers.setStatus.mutate({ id: offer.id, status: 'live' })
const application = await applying.applications.apply.mutate({ id: offer.id, message: 'Hello' })
const [listed, me] = await Promise.all([visitor.offers.list.query({ category: 'Home' }), applying.users.me.query()])
const stranger = await visitor.users.me.query().catch((error: unknown) => isRefusal(error, 'unauthenticated'))

const live = await new Promise<string>((resolve, reject) => {
  const subscription = selling.live.changes.subscribe(undefined, {
    onData({ data }) {
      subscription.unsubscribe()
      resolve(data.kind)
    },
    onError: reject,
  })
})

/** Compiled only. */
export async function lists() {
  for await (const sale of selling.pages(selling.sales.list, { acceptance_status: 'rejected' })) {
    const one: Sale = sale
    const reason: RejectionReason | null = one.rejection_reason
    if (reason === 'not_paid') return one
  }
  for await (const { creator } of selling.pages(selling.applications.listForOffer, { id: offer.id })) void creator.id
  if (isRefusal(early, 'conflict', 'gone')) return early.data.problem.code satisfies 'conflict' | 'gone'
}

/** Compiled only. */
export function mistakes() {
  // @ts-expect-error an offer is named
  selling.pages(selling.applications.listForOffer)
  // @ts-expect-error it is no list
  selling.pages(selling.users.me)
  // @ts-expect-error there is no such code
  isRefusal(early, 'no_such_code')
}

console.log(
  JSON.stringify({
    offer: offer.status,
    early: problem?.code,
    application: application.status,
    listed: listed.items.some(({ title }) => title === offer.title),
    me: me.role,
    stranger,
    live,
    money: formatMoney(parseMoney('1250') ?? 0),
  }),
)
`

/** A program that uses the declarations only, with `@trpc/client`. */
const PLAIN = `import { createTRPCClient, httpBatchLink } from '@trpc/client'
import type { AppRouter } from 'affiliate-marketplace-client'

const plain = createTRPCClient<AppRouter>({ links: [httpBatchLink({ url: 'http://127.0.0.1:3000/trpc' })] })
const page = await plain.offers.list.query({ category: 'Home' })
export const titles: string[] = page.items.map(({ title }) => title)
plain.live.changes.subscribe({}, { onData: ({ data }) => void data.kind })
// @ts-expect-error there is no such field
void plain.offers.list.query({ colour: 'red' })
// @ts-expect-error an event of another kind has no sale
plain.live.changes.subscribe({}, { onData: ({ data }) => void data.sale })
`

/** Compiles only if the package's types are those that the router has. */
const EXACT = `import type { Inputs as RouterInputs, Outputs as RouterOutputs } from '${join(CLIENT, 'index.ts')}'
import type { Inputs, Outputs } from './project/node_modules/${NAME}/types/client/index.js'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Names<Groups> = { [Group in keyof Groups]: keyof Groups[Group] }
/** The procedures that differ. tRPC adds void to inputs that may be left out. */
type Different<A, B> = {
  [Group in keyof (A | B)]: {
    [Name in keyof (A[Group] | B[Group])]: Same<Exclude<A[Group][Name], void>, Exclude<B[Group][Name], void>> extends true
      ? never
      : [Group, Name]
  }[keyof (A[Group] | B[Group])]
}[keyof (A | B)]

export const names: Same<Names<Inputs>, Names<RouterInputs>> = true
export const inputs: [Different<Inputs, RouterInputs>] extends [never] ? true : Different<Inputs, RouterInputs> = true
export const outputs: [Different<Outputs, RouterOutputs>] extends [never] ? true : Different<Outputs, RouterOutputs> = true
// @ts-expect-error the comparison finds a difference
export const control: [Different<Inputs, RouterOutputs>] extends [never] ? true : false = true
`

/** A worker that posts the account of a token and the first of its live changes. */
const worker = (url: string, token: string) => `import { createClient } from './client.js'
const client = createClient({ url: '${url}', token: '${token}' })
const { email } = await client.users.me.query()
client.live.changes.subscribe(
  {},
  { onData: ({ data }) => postMessage({ email, kind: data.kind }), onError: (error) => postMessage(String(error)) },
)
`
const FIRST_MESSAGE = `new Promise((resolve) => {
  const worker = new Worker('worker.js', { type: 'module' })
  worker.onmessage = ({ data }) => resolve(data)
  worker.onerror = ({ message }) => resolve(message)
})`

interface World {
  folder: string
  tarball: string
  /** A project that has the package installed. */
  project: string
  service: Awaited<ReturnType<typeof startServing>>
  url: string
  /** Of the service. */
  settings: Record<string, string>
  /** Answers files of `folder/page`; the service allows calls from its pages. */
  pages: Server
  origin: string
  creator: { email: string; password: string; token: string; slug: string }
}

const it = suite<World>('the client package')

it.before(async (world) => {
  world.folder = fs.mkdtempSync(join(tmpdir(), 'affiliate-client-'))
  world.tarball = await packClient(world.folder)
  world.project = join(world.folder, 'project')
  world.pages = await servePages(join(world.folder, 'page'))
  world.origin = `http://127.0.0.1:${(world.pages.address() as AddressInfo).port}`
  world.settings = {
    ...{ DATA_DIR: join(world.folder, 'data'), CORS_ORIGINS: world.origin, APP_KEY: '' },
    ...{ LOG_LEVEL: 'warn', HOST: '127.0.0.1', PORT: '0' },
  }
  const serving = { folder: world.folder, environment: world.settings }
  world.service = await startServing(['serve', '--seed', '--json'], serving)
  const { url, seeded } = world.service.document
  world.url = url
  world.settings.PORT = new URL(url).port
  const { password } = seeded
  const { email } = seeded.accounts.find(({ role }: { role: string }) => role === 'creator')
  const { token } = (await call(url, 'POST', '/auth/login', { body: { email, password } })).body
  const { items } = (await call(url, 'GET', '/affiliate-links', { token })).body
  world.creator = { email, password, token, slug: items[0].slug }
})
it.after(async ({ folder, service, pages }) => {
  service?.child.kill('SIGTERM')
  await service?.ended
  pages?.close()
  fs.rmSync(folder, { recursive: true, force: true })
})

it('installs as one small package', async ({ folder, project, tarball }) => {
  fs.mkdirSync(project)
  fs.writeFileSync(join(project, 'package.json'), '{ "type": "module" }')
  await npmInstall(project, tarball)
  const installed = fs.globSync('node_modules/**/package.json', { cwd: project })
  assert.equal(installed, [`node_modules/${NAME}/package.json`])
  assert.not.ok(fs.existsSync(join(project, 'node_modules', '.bin')))
  const own = join(project, 'node_modules', NAME)
  const files = fs.globSync('**/*', { cwd: own }).filter((path) => fs.statSync(join(own, path)).isFile())
  assert.ok(files.reduce((sum, path) => sum + fs.statSync(join(own, path)).size, 0) < 300_000)
  for (const path of ['README.md', 'LICENSE', 'THIRD-PARTY-LICENSES.txt'])
    assert.ok(files.includes(path), path)
  const imports = /^(?:import|export)\b.*\bfrom\s*['"][^.]|\bimport\(\s*['"]|\brequire\(\s*['"]/m
  for (const path of files.filter((name) => /\.(js|ts)$/.test(name)))
    assert.not.match(fs.readFileSync(join(own, path), 'utf8'), imports, path)
  const script = await build({ entryPoints: [join(own, 'index.js')], minify: true, write: false })
  assert.ok(gzipSync(script.outputFiles[0]?.contents ?? '').length < 20_000, 'in a browser')
  const lines = fs.readFileSync(join(own, 'index.js'), 'utf8').split('\n')
  const isOfOnePlatform = (line: string) => /\b(process|window|document|Buffer|require)\./.test(line)
  const platform = lines.filter((line) => isOfOnePlatform(line) && !line.includes('typeof'))
  assert.equal(platform, [], 'a worker has none of these')
  const versionIn = (place: string) =>
    JSON.parse(fs.readFileSync(join(place, 'package.json'), 'utf8')).version
  assert.is(versionIn(own), versionIn(ROOT))
  assert.is(tarball, join(folder, `${NAME}-${versionIn(own)}.tgz`))
})

it('has exactly the types of the router', ({ folder }) => {
  const file = join(folder, 'exact.ts')
  fs.writeFileSync(file, EXACT)
  fs.writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT)
  // The router's sources are checked elsewhere.
  const program = ts.createProgram([file], { ...options, typeRoots: [join(MODULES, '@types')] })
  const source = program.getSourceFile(file)
  assert.ok(source)
  const errors = program.getSemanticDiagnostics(source).filter(({ code }) => code !== ABSOLUTE_TS_IMPORT)
  assert.equal(pluck(errors, 'messageText'), [])
})

/** Of a strict project that sees only these declarations. */
const STRICT = { strict: true, target: 'es2022', types: ['node'], typeRoots: [join(MODULES, '@types')] }

/** What a compiler says of a project with these options. */
async function compileWith(
  project: string,
  compilerOptions: object,
  compiler = 'typescript',
): Promise<string> {
  const config = { compilerOptions: { ...STRICT, ...compilerOptions }, include: ['*.ts'] }
  fs.writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
  return compile(project, join(MODULES, compiler, 'bin', 'tsc'))
}

for (const [compiler, moduleResolution] of [
  ['typescript', 'bundler'],
  ['typescript', 'node16'],
  ['typescript-5', 'bundler'],
  ['typescript-5', 'node16'],
  ['typescript-5', 'node10'],
] as const)
  it(`compiles strictly with ${compiler} and ${moduleResolution}, README included`, async ({ project }) => {
    fs.writeFileSync(join(project, 'caller.ts'), CALLER)
    for (const [index, text] of readmeExamples().entries())
      fs.writeFileSync(join(project, `example-${index + 1}.ts`), text)
    const options = {
      exactOptionalPropertyTypes: true,
      // Node's declarations do not compile with node10.
      skipLibCheck: moduleResolution === 'node10',
      module: moduleResolution === 'node16' ? 'node16' : 'esnext',
      moduleResolution,
      ...{ outDir: 'out', rootDir: '.' },
    }
    assert.is(await compileWith(project, options, compiler), '')
  })

it('gives a project with @trpc/client the types of the router', async ({ folder, project }) => {
  const plain = join(folder, 'plain')
  fs.mkdirSync(plain)
  fs.writeFileSync(join(plain, 'package.json'), '{ "type": "module" }')
  fs.writeFileSync(join(plain, 'plain.ts'), PLAIN)
  fs.cpSync(join(project, 'node_modules'), join(plain, 'node_modules'), { recursive: true })
  fs.symlinkSync(join(MODULES, '@trpc'), join(plain, 'node_modules', '@trpc'))
  assert.is(await compileWith(plain, { noEmit: true, skipLibCheck: true, module: 'node16' }), '')
})

const canInstall = await registryAnswers()

for (const [major, version] of Object.entries(NODES)) {
  const found = nodeOnThisMachine(major)
  if (!found && !canInstall) {
    it.skip('the npm registry does not answer, so another Node release cannot be installed', () => {})
    continue
  }
  it(`calls the service on Node ${major}`, async ({ folder, project, url }) => {
    const node = found ?? (await installNode(version, folder))
    const { stdout } = await run(node, [join(project, 'out', 'caller.js'), url, `node-${major}`])
    assert.equal(JSON.parse(stdout), {
      ...{ offer: 'draft', early: 'not_found', application: 'pending', listed: true, me: 'creator' },
      ...{ stranger: true, live: 'start', money: '1250.00' },
    })
  })
}

it("runs the README's examples against a seeded service", async (world) => {
  const percent = /^\S.* \d+(\.\d+)? %$/m
  const amount = /^Commission: Rs [\d,]+\.\d\d$/m
  const prints = [percent, /^pending$/m, /^[A-Z]\w+/m, /^Wrong email or password\.$/m, amount]
  const { url, creator } = world
  const body = { name: 'README', scope: 'write' }
  const { key } = (await call(url, 'POST', '/auth/api-keys', { token: creator.token, body })).body
  for (const [index, expected] of prints.entries()) {
    const { stdout } = await run(process.execPath, [exampleOf(world, index + 1)], {
      env: { ...process.env, AFFILIATE_API_KEY: key },
    })
    assert.match(stdout, expected, `example ${index + 1}`)
  }
  const follower = spawn(process.execPath, [exampleOf(world, 6)], {
    env: { ...process.env, AFFILIATE_API_KEY: key },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(follower, 'exit')
  const lines: string[] = []
  for await (const line of createInterface(follower.stdout)) {
    lines.push(line)
    if (line === 'Waiting for a sale') await makeSale(world, 'path-landing-site')
  }
  assert.equal(await ended, [0, null])
  assert.match(lines.at(-1) ?? '', /^#\S+ accepted \d+\.\d\d$/)
})

it("verifies the service's webhooks in the README's example", async (world) => {
  const { url, creator } = world
  const port = await freePort()
  const endpoint = { url: `http://127.0.0.1:${port}/`, events: ['sale.accepted'] }
  const { token } = creator
  const { secret } = (await call(url, 'POST', '/webhook-endpoints', { body: endpoint, token })).body
  const file = exampleOf(world, 7)
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('4000', String(port)))
  const receiver = spawn(process.execPath, [file], {
    env: { ...process.env, AFFILIATE_WEBHOOK_SECRET: secret },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(receiver, 'exit')
  let received = ''
  for await (const line of createInterface(receiver.stdout)) {
    if (line === 'Waiting for events') {
      const forged = await fetch(endpoint.url, { method: 'POST', body: '{}' })
      assert.is(forged.status, 400)
      await makeSale(world, 'note-attributes-before-landing-site')
      continue
    }
    received = line
    receiver.kill('SIGTERM')
  }
  await ended
  assert.match(received, /^#\S+ \d+\.\d\d$/)
})

if (!hasChromium) {
  it.skip('there is no Chromium at /usr/bin/chromium to run a worker in', () => {})
} else {
  it('calls the service and follows its changes from a worker', async ({
    folder,
    project,
    url,
    origin,
    creator,
  }) => {
    const pages = join(folder, 'page')
    fs.mkdirSync(pages, { recursive: true })
    fs.cpSync(join(project, 'node_modules', NAME, 'index.js'), join(pages, 'client.js'))
    fs.writeFileSync(join(pages, 'worker.js'), worker(url, creator.token))
    fs.writeFileSync(join(pages, 'worker.html'), '<!doctype html><title>A page with a worker</title>')
    const browser = await launchChromium()
    try {
      const page = await browser.newPage()
      await page.goto(`${origin}/worker.html`)
      const heard = await page.evaluate(FIRST_MESSAGE)
      assert.equal(heard, { email: creator.email, kind: 'start' })
    } finally {
      await browser.close()
    }
  })
}

if (!hasChromium) {
  it.skip('there is no Chromium at /usr/bin/chromium to show the example page in', () => {})
} else if (!canInstall) {
  it.skip('the npm registry does not answer, so Vite cannot be installed', () => {})
} else {
  it('shows offers and a live sale in a browser, in a page built with Vite', async (world) => {
    const { folder, tarball, url, origin, creator } = world
    const example = join(folder, 'example')
    fs.cpSync(join(CLIENT, 'example'), example, { recursive: true })
    await npmInstall(example, tarball)
    await run(process.execPath, [join(MODULES, 'typescript', 'bin', 'tsc'), '--project', example])
    await run('npm', ['run', 'build', '--', '--outDir', join(folder, 'page')], {
      cwd: example,
      env: { ...process.env, PATH: `${join(MODULES, '.bin')}:${process.env.PATH}`, VITE_SERVICE_URL: url },
    })
    const browser = await launchChromium()
    try {
      const page = await browser.newPage({ viewport: { width: 800, height: 700 } })
      page.setDefaultTimeout(GIVE_UP_MS)
      const errors: string[] = []
      page.on('pageerror', (error) => errors.push(String(error)))
      await page.goto(origin)
      await page.locator('#offers li').first().waitFor()
      const offers = await page.locator('#offers li').allInnerTexts()
      assert.ok(
        offers.length >= 3 && offers.some((text) => /from Chenab Lawn: [\d.]+ %/.test(text)),
        offers.join(),
      )

      await page.getByLabel('Email').fill(creator.email)
      await page.getByLabel('Password').fill('not the password')
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByText('Wrong email or password.').waitFor()
      await page.getByLabel('Password').fill(creator.password)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.locator('#sales li').nth(4).waitFor()
      await makeSale(world, 'absolute-landing-site')
      await page.locator('#sales li').nth(5).waitFor()
      assert.match(
        await page.locator('#sales li').first().innerText(),
        /^Order #\S+: accepted, commission Rs [\d,]+\.\d\d$/,
      )
      assert.is(await page.locator('#message').innerText(), '')
      if (SCREENSHOT) await page.screenshot({ path: SCREENSHOT })
      assert.equal(errors, [])
    } finally {
      await browser.close()
    }
  })
}

it.run()

/** The TypeScript blocks of the client's README. */
function readmeExamples(): string[] {
  const text = fs.readFileSync(join(CLIENT, 'README.md'), 'utf8')
  const blocks = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, block = '']) => block)
  assert.is(blocks.length, 7)
  return blocks
}

/** An example as compiled, which calls this service instead of the one on the default port. */
function exampleOf({ project, url }: World, number: number): string {
  const file = join(project, 'out', `example-${number}.js`)
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('http://127.0.0.1:3000', url))
  return file
}

/** Replays a paid order of a visitor of the creator's link. Each fixture is one order. */
async function makeSale({ settings, folder, creator }: World, fixture: string): Promise<void> {
  const { code, stderr } = await runHere(['webhooks', 'replay', fixture, '--link', creator.slug], settings, {
    folder,
  })
  assert.is(code, 0, stderr)
}

function nodeOnThisMachine(major: string): string | undefined {
  return [process.execPath, '/usr/bin/node', '/usr/local/bin/node'].find(
    (node) =>
      fs.existsSync(node) && execFileSync(node, ['--version'], { encoding: 'utf8' }).startsWith(`v${major}.`),
  )
}

async function installNode(version: string, folder: string): Promise<string> {
  const project = join(folder, `node-${version}`)
  const name = `node-linux-${process.arch}`
  fs.mkdirSync(project)
  fs.writeFileSync(join(project, 'package.json'), '{}')
  await npmInstall(project, `${name}@${version}`)
  return join(project, 'node_modules', name, 'bin', 'node')
}

async function servePages(folder: string): Promise<Server> {
  const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }
  const server = createServer(({ url = '/' }, response) => {
    const path = join(folder, url === '/' ? 'index.html' : url)
    if (!fs.existsSync(path)) return response.writeHead(404).end()
    response.setHeader('content-type', types[extname(path)] ?? 'application/octet-stream')
    response.end(fs.readFileSync(path))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}
