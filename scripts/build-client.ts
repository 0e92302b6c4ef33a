import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { clientApi } from './client-api.ts'
import { compile } from './compile.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CLIENT = join(ROOT, 'shared', 'client')

/** The files of shared/ whose declarations the package needs; it has them in types/. */
const DECLARATIONS = [
  'client/index',
  'client/problems',
  'client/procedures',
  'client/webhooks',
  'error-codes',
  'events',
  'money',
  'rates',
  'rejection-reasons',
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
    writeDeclaration(folder, 'client/api', clientApi())
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
