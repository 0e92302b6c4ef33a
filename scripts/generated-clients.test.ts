// proof only
// database: none
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openServiceBed, type ServiceBed } from '../server/test/testkit/service-bed.ts'
import { compile, npmInstall, registryAnswers, run } from './testing/npm.ts'

const TSC = fileURLToPath(new URL('../node_modules/typescript-5/bin/tsc', import.meta.url))

interface Generator {
  name: string
  packages: string[]
  /** Its command; it reads `openapi.json` and writes into `generated`. */
  command: string[]
  /** More files that it needs. */
  files?: (url: string) => Record<string, string>
  /** A program that sets `role`, `offers` and `code` with what was generated, at the address `url`. */
  program: string
}

const ACCOUNT = `{ password: 'a long passphrase', display_name: 'Generated', role: 'merchant' as const }`
const TERMS = `{
  title: 'Brass lamp – پیتل',
  description: null,
  image_url: null,
  product_ids: null,
  product_url: 'https://shop.pk/products/lamp',
  category: 'Home',
  niche: 'Lamps',
  commission_rate: 12.5,
  attribution_window_days: 30,
}`
const UNKNOWN = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'

const GENERATORS: Generator[] = [
  {
    name: 'openapi-typescript',
    packages: ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0'],
    command: ['openapi-typescript', 'openapi.json', '-o', 'generated/schema.ts'],
    program: `import createClient from 'openapi-fetch'
import type { paths } from './generated/schema.js'
const client = createClient<paths>({ baseUrl: url })
const { data: session } = await client.POST('/auth/register', { body: { ...account, email: 'a@example.pk' } })
const headers = { authorization: \`Bearer \${session?.token}\` }
await client.POST('/offers', { headers, body: terms })
const { data: page } = await client.GET('/offers', { headers, params: { query: { mine: true } } })
const { error } = await client.GET('/sales/{id}', { headers, params: { path: { id: unknown } } })
const role = session?.user.role
const offers = page?.items.map(({ title, image_url }) => [title, image_url])
const code = error?.code`,
  },
  {
    name: '@hey-api/openapi-ts',
    packages: ['@hey-api/openapi-ts@0.99.0'],
    command: ['openapi-ts', '-i', 'openapi.json', '-o', 'generated'],
    program: `import { authRegister, offersCreate, offersList, salesGet } from './generated'
import { createClient } from './generated/client'
const client = createClient({ baseUrl: url })
const { data: session } = await authRegister({ client, body: { ...account, email: 'b@example.pk' } })
const headers = { authorization: \`Bearer \${session?.token}\` }
await offersCreate({ client, headers, body: terms })
const { data: page } = await offersList({ client, headers, query: { mine: true } })
const { error } = await salesGet({ client, headers, path: { id: unknown } })
const role = session?.user.role
const offers = page?.items.map(({ title, image_url }) => [title, image_url])
const code = error?.code`,
  },
  {
    name: 'orval with zod',
    packages: ['orval@8.38.0', 'zod@4.6.7'],
    command: ['orval', '--config', 'orval.config.mjs'],
    files: (url) => ({
      'orval.config.mjs': `const input = 'openapi.json'
export default {
  calls: { input, output: { target: 'generated/calls.ts', client: 'fetch', baseUrl: '${url}' } },
  schemas: { input, output: { target: 'generated/schemas.ts', client: 'zod' } },
}`,
    }),
    program: `import { authRegister, offersCreate, offersList, salesGet } from './generated/calls'
import { AuthRegisterResponse, OffersCreateBody, OffersListResponse } from './generated/schemas'
const registered = await authRegister({ ...account, email: 'c@example.pk' })
const session = AuthRegisterResponse.parse(registered.data)
const headers = { authorization: \`Bearer \${session.token}\` }
await offersCreate(OffersCreateBody.parse(terms), { headers })
const page = OffersListResponse.parse((await offersList({ mine: true }, { headers })).data)
const refused = await salesGet(unknown, { headers })
const role = session.user.role
const offers = page.items.map(({ title, image_url }) => [title, image_url])
const code = refused.status === 404 ? refused.data.code : null`,
  },
  {
    name: 'openapi-zod-client',
    packages: ['openapi-zod-client@1.18.3', '@zodios/core@10.9.6', 'zod@3.25.76', 'axios@1'],
    command: ['openapi-zod-client', 'openapi.json', '-o', 'generated.ts'],
    program: `import { createApiClient } from './generated'
const api = createApiClient(url)
const session = await api['auth.register']({ ...account, email: 'd@example.pk' })
const headers = { authorization: \`Bearer \${session.token}\` }
await api['offers.create'](terms, { headers })
const page = await api['offers.list']({ headers, queries: { mine: true } })
const error = await api['sales.get']({ headers, params: { id: unknown } }).catch((refusal) => refusal)
const role = session.user.role
const offers = page.items.map(({ title, image_url }) => [title, image_url])
const code = error.response.data.code`,
  },
]

const COMPILER_OPTIONS = {
  strict: true,
  noEmit: true,
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  module: 'esnext',
  moduleResolution: 'bundler',
  types: [],
  // What they generate may import libraries that need more.
  skipLibCheck: true,
}

interface World {
  folder: string
  bed: ServiceBed
}

const it = suite<World>('clients generated from the OpenAPI document')

it.before(async (world) => {
  world.folder = mkdtempSync(join(tmpdir(), 'affiliate-generated-'))
  world.bed = await openServiceBed('sqlite')
})
it.after(async ({ folder, bed }) => {
  await bed?.close()
  rmSync(folder, { recursive: true, force: true })
})

const canInstall = await registryAnswers()

for (const [index, { name, packages, command, files, program }] of GENERATORS.entries()) {
  if (!canInstall) {
    it.skip(`the npm registry does not answer, so ${name} cannot be installed`, () => {})
    continue
  }
  it(`compile and call the service: ${name}`, async ({ folder, bed: { url } }) => {
    const cwd = join(folder, String(index))
    const document = await (await fetch(`${url}/openapi.json`)).text()
    const written = {
      ...files?.(url),
      'openapi.json': document,
      'package.json': '{ "type": "module", "private": true }',
      'tsconfig.json': JSON.stringify({
        compilerOptions: COMPILER_OPTIONS,
        include: ['*.ts', 'generated/**/*.ts'],
      }),
      'given.ts': `export const url = '${url}'
export const account = ${ACCOUNT}
export const terms = ${TERMS}
export const unknown = '${UNKNOWN}'
`,
      'program.ts': `import { account, terms, unknown, url } from './given'
${program}
console.log(JSON.stringify({ role, offers, code, url }))
`,
    }
    mkdirSync(cwd)
    for (const [file, text] of Object.entries(written)) writeFileSync(join(cwd, file), text)
    await npmInstall(cwd, ...packages, 'typescript@5.9.3')
    await run('npx', ['--no-install', ...command], { cwd })
    assert.is(await compile(cwd, TSC), '')
    const outfile = join(cwd, 'program.mjs')
    const entryPoints = [join(cwd, 'program.ts')]
    const target = { bundle: true, format: 'esm', platform: 'node', packages: 'external' } as const
    await build({ ...target, entryPoints, outfile, logLevel: 'error' })
    const { stdout } = await run(process.execPath, [outfile])
    const offers = [['Brass lamp – پیتل', null]]
    assert.equal(JSON.parse(stdout), { role: 'merchant', offers, code: 'not_found', url })
  })
}

it.run()
