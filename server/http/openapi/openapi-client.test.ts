// proof only
// database: none
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { appRouter } from '../router.ts'
import { openApiDocument } from './openapi.ts'

const TSC = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url))

// openapi-typescript builds its output with the compiler's JavaScript interface, which TypeScript 7 does not have.
registerHooks({
  resolve: (specifier, context, next) => {
    const forGenerator = specifier === 'typescript' && context.parentURL?.includes('/openapi-typescript/')
    return next(forGenerator ? 'typescript-5' : specifier, context)
  },
})

/** What someone who has nothing but /openapi.json writes against it. */
const CALLER = `import type { components, operations, paths } from './schema.ts'

type Problem = components['schemas']['Problem']
type Page = paths['/offers']['get']['responses']['200']['content']['application/json']
type Registration = NonNullable<operations['auth.register']['requestBody']>['content']['application/json']
type Query = NonNullable<operations['offers.list']['parameters']['query']>

export const registration: Registration = {
  email: 'ayesha@example.pk',
  password: 'a long passphrase',
  role: 'creator',
  display_name: 'Ayesha',
}
export const query: Query = { sort: 'newest', limit: 10 }
export const titles = (page: Page): string[] => page.items.map((offer) => offer.title)
export const next = (page: Page): string | null => page.next_cursor
export const isLimited = (problem: Problem): boolean => problem.code === 'rate_limited'
export const from: operations['offers.list']['responses']['429']['content']['application/problem+json'] = {
  type: 'about:blank',
  title: 'Too Many Requests',
  status: 429,
  detail: 'Try again later.',
  code: 'rate_limited',
  request_id: 'x',
}

// @ts-expect-error no one registers as an admin
export const admin: Registration = { ...registration, role: 'admin' }
// @ts-expect-error no such field
export const stray: Registration = { ...registration, is_admin: true }
// @ts-expect-error no such code
export const code: Problem['code'] = 'no_such_code'
`

function compile(folder: string): string {
  try {
    execFileSync(process.execPath, [TSC, '--project', folder], { encoding: 'utf8', stdio: 'pipe' })
    return ''
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}

test('the document generates types that compile, and mean what the service means', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-openapi-'))
  try {
    const { astToString, default: generate } = await import('openapi-typescript')
    const document = openApiDocument(appRouter, 'http://127.0.0.1:3000')
    const schema = astToString(await generate(JSON.stringify(document)))
    writeFileSync(join(folder, 'schema.ts'), schema)
    writeFileSync(join(folder, 'caller.ts'), CALLER)
    const compilerOptions = {
      strict: true,
      noEmit: true,
      target: 'es2024',
      module: 'nodenext',
      allowImportingTsExtensions: true,
      types: [],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    assert.is(compile(folder), '')
    for (const path of Object.keys(document.paths as object)) assert.ok(schema.includes(`"${path}": {`), path)
    writeFileSync(join(folder, 'caller.ts'), CALLER.replaceAll('@ts-expect-error', 'here:'))
    assert.is(compile(folder).match(/error TS/g)?.length, 3, 'the compiler does check')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.run()
