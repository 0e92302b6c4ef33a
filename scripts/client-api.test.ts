// database: none
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript-5'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { appRouter } from '../server/http/router.ts'
import { proceduresOf } from '../server/platform/api/procedure.ts'
import { clientApi } from './client-api.ts'

const SHARED = fileURLToPath(new URL('../shared/', import.meta.url))
const PROGRAM = join(SHARED, 'client', 'program.ts')

/** What an editor shows where the cursor is: `|` in the program. The client's declarations are those that the package has. */
function hover(program: string): string {
  const text = `import type { MarketplaceClient } from './procedures.ts'
import type { Sale } from './api.ts'
declare const client: MarketplaceClient
declare const sale: Sale
${program}`
  const files = new Map([
    [PROGRAM, text.replace('|', '')],
    [join(SHARED, 'client', 'api.ts'), API],
  ])
  const service = ts.createLanguageService({
    getCompilationSettings: () => ({
      strict: true,
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      allowImportingTsExtensions: true,
      noEmit: true,
      types: [],
      lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
    }),
    getScriptFileNames: () => [PROGRAM],
    getScriptVersion: () => '1',
    getScriptSnapshot: (path) => {
      const found = files.get(path) ?? (ts.sys.fileExists(path) ? readFileSync(path, 'utf8') : undefined)
      return found === undefined ? undefined : ts.ScriptSnapshot.fromString(found)
    },
    getCurrentDirectory: () => SHARED,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (path) => files.has(path) || ts.sys.fileExists(path),
    readFile: (path) => files.get(path) ?? ts.sys.readFile(path),
  })
  assert.equal(
    service.getSemanticDiagnostics(PROGRAM).map(({ messageText }) => messageText),
    [],
  )
  const info = service.getQuickInfoAtPosition(PROGRAM, text.indexOf('|'))
  return [info?.displayParts, info?.documentation].map((parts) => ts.displayPartsToString(parts)).join('\n')
}

const API = clientApi()

test('an editor shows the summary and description of procedures', () => {
  const shown = hover('client.applications.app|ly')
  assert.match(shown, /Apply to|apply/)
  assert.match(shown, /after a rejection or a withdrawal, the creator may apply again/)
  assert.match(shown, /Roles: creator\. Refuses with `not_found`, `offer_not_live`/)
})

test('an editor shows the description and choices of fields, of inputs and outputs', () => {
  assert.match(
    hover('void sale.rejection_|reason'),
    /"outside_attribution_window"[\s\S]*The first check that failed/,
  )
  const input = hover("void client.offers.list.query({ so|rt: 'newest' })")
  assert.match(input, /"newest" \| "commission_desc" \| "commission_asc"[\s\S]*`newest` goes by when/)
})

test('every procedure and every field is described', () => {
  for (const { name, meta } of proceduresOf(appRouter))
    assert.ok(API.includes(`* ${meta.summary}.`) || API.includes(`/** ${meta.summary}.`), name)
  const source = ts.createSourceFile('api.d.ts', API, ts.ScriptTarget.Latest, true)
  const silent: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isInterfaceDeclaration(node) && /^(AppRouter|ErrorShape)$/.test(node.name.text)) return
    if (ts.isTypeAliasDeclaration(node)) return
    const isGroup =
      ts.isPropertySignature(node) &&
      ts.isInterfaceDeclaration(node.parent) &&
      node.parent.name.text === 'Api'
    if (ts.isPropertySignature(node) && !isGroup) {
      const name = node.name.getText()
      // The keys of e-mail choices are events.
      const isPart = /^(type|input|output|data|".*)$/.test(name)
      if (!isPart && ts.getJSDocCommentsAndTags(node).length === 0) silent.push(name)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  assert.equal(silent, [])
})

test.run()
