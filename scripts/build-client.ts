import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import ts from 'typescript-5'
import { compile } from './compile.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CLIENT = join(ROOT, 'shared', 'client')

/** The files of shared/ whose declarations the package needs; it has them in types/. */
const DECLARATIONS = [
  'client/index',
  'client/procedures',
  'client/webhooks',
  'error-codes',
  'events',
  'money',
  'rates',
]

/**
 * Writes the client package to `folder`: one JavaScript file that contains its libraries, and declarations that refer to
 * nothing outside the package. An application installs this one package and none of the service's.
 */
export async function buildClient(folder: string): Promise<void> {
  const scratch = mkdtempSync(join(ROOT, 'node_modules', '.build-client-'))
  try {
    mkdirSync(folder, { recursive: true })
    compile('shared/client/tsconfig.json', scratch, '--noCheck')
    for (const name of DECLARATIONS) {
      const text = readFileSync(join(scratch, 'shared', `${name}.d.ts`), 'utf8')
      writeDeclaration(folder, name, text)
    }
    writeDeclaration(
      folder,
      'client/api',
      apiOf(readFileSync(join(scratch, 'server/http/router.d.ts'), 'utf8')),
    )
    const { metafile } = await build({
      entryPoints: [join(CLIENT, 'index.ts')],
      outfile: join(folder, 'index.js'),
      bundle: true,
      format: 'esm',
      platform: 'neutral',
      mainFields: ['module', 'main'],
      target: ['es2022'],
      // An error's stack shows the name of its class.
      keepNames: true,
      metafile: true,
      absWorkingDir: ROOT,
      logLevel: 'warning',
    })
    writeFileSync(join(folder, 'THIRD-PARTY-LICENSES.txt'), licensesOf(Object.keys(metafile.inputs)))
    for (const name of ['package.json', 'README.md']) copyFileSync(join(CLIENT, name), join(folder, name))
    copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function writeDeclaration(folder: string, name: string, text: string): void {
  const path = join(folder, 'types', `${name}.d.ts`)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text.replace(/(from\s*|import\()(["'])(\.[^"']*)\.ts\2/g, '$1$2$3.js$2'))
}

/** The router's declaration, reduced to what shared/client/api.ts derives from it: type, input and output of each procedure. */
export function apiOf(router: string): string {
  const source = ts.createSourceFile('router.d.ts', router, ts.ScriptTarget.Latest, true)
  const declared = source.statements.find(ts.isVariableStatement)?.declarationList.declarations[0]?.type
  const groups = membersOf(routesOf(declared)).map(([group, routes]) => {
    const procedures = membersOf(routesOf(routes)).map(([name, type]) => `    ${name}: ${procedureOf(type)}`)
    return `  ${group}: {\n${procedures.join('\n')}\n  }`
  })
  const text = `/** The type, input and output of every procedure. */\nexport interface Api {\n${groups.join('\n')}\n}\n`
  if (text.includes('import(')) throw new Error('the API declaration refers to another module')
  return text
}

/** `X` of a plain `X` or of `TRPCBuiltRouter<…, TRPCDecorateCreateRouterOptions<X>>`. */
function routesOf(router: ts.Node | undefined): ts.Node {
  if (router && ts.isTypeLiteralNode(router)) return router
  return argumentOf(argumentOf(router, 'TRPCBuiltRouter', 1), 'TRPCDecorateCreateRouterOptions', 0)
}

function procedureOf(procedure: ts.Node): string {
  const type = /^TRPC(Query|Mutation|Subscription)Procedure$/.exec(nameOf(procedure))?.[1]?.toLowerCase()
  const { input, output } = Object.fromEntries(membersOf(argumentOf(procedure, nameOf(procedure), 0)))
  if (!type || !input || !output) throw new Error(`not a procedure: ${procedure.getText().slice(0, 80)}`)
  const answer = type === 'subscription' ? `{ id: string; data: ${textOf(eventOf(output))} }` : textOf(output)
  return [`{`, `  type: '${type}'`, `  input: ${textOf(input)}`, `  output: ${answer}`, `}`].join('\n    ')
}

function eventOf(stream: ts.Node): ts.Node {
  return argumentOf(argumentOf(stream, 'AsyncIterable', 0), 'TrackedData', 0)
}

/** The node's text, indented as a member of a procedure. */
function textOf(node: ts.Node): string {
  const text = node.getText()
  const closing = /\n( *)[^\n]*$/.exec(text)?.[1] ?? ''
  return text.replaceAll(`\n${closing}`, `\n${' '.repeat(6)}`)
}

function argumentOf(node: ts.Node | undefined, name: string, index: number): ts.Node {
  const found =
    node && nameOf(node) === name ? (node as ts.NodeWithTypeArguments).typeArguments?.[index] : undefined
  if (!found) throw new Error(`the router's declaration has no ${name} where one is expected`)
  return found
}

/** `Name` of the types `Name<…>` and `import("…").Name<…>`. */
function nameOf(node: ts.Node): string {
  if (ts.isImportTypeNode(node)) return node.qualifier?.getText() ?? ''
  return ts.isTypeReferenceNode(node) ? node.typeName.getText() : ''
}

function membersOf(node: ts.Node): [name: string, type: ts.TypeNode][] {
  if (!ts.isTypeLiteralNode(node)) throw new Error(`not an object type: ${node.getText().slice(0, 80)}`)
  return node.members.map((member) => {
    if (!ts.isPropertySignature(member) || !member.type) throw new Error(`no type: ${member.getText()}`)
    return [member.name.getText(), member.type]
  })
}

/** The licenses of the packages that the bundle contains parts of. */
function licensesOf(inputs: string[]): string {
  const packages = new Set(
    inputs.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
  )
  return [...packages]
    .sort()
    .map((name) => {
      const folder = join(ROOT, 'node_modules', name)
      const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
        version: string
      }
      return `${name} ${version}\n\n${readFileSync(join(folder, 'LICENSE'), 'utf8').trim()}\n`
    })
    .join(`\n${'-'.repeat(80)}\n\n`)
}
