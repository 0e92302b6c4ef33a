import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/**
 * Writes `dist/`: the service's JavaScript (Node strips no types below node_modules) and the client's types. Replaces dist/ in
 * one step. Checks no types: `npm run types` does.
 */
function build(): void {
  const scratch = mkdtempSync(join(ROOT, 'node_modules', '.build-'))
  try {
    const made = join(scratch, 'dist')
    compile('tsconfig.build.json', made, '--noCheck')
    // Bodies and manifests are read beside the code that fills them; the databases are for tests only.
    const databases = join(ROOT, 'fixtures', 'databases')
    cpSync(join(ROOT, 'fixtures'), join(made, 'fixtures'), {
      recursive: true,
      filter: (path) => !path.endsWith('.ts') && path !== databases,
    })
    cpSync(join(ROOT, 'server', 'guides'), join(made, 'server', 'guides'), { recursive: true })
    const storeScript = join('shared', 'store-script', 'store.min.js')
    cpSync(join(ROOT, storeScript), join(made, storeScript))
    addClientTypes(join(scratch, 'types'), made)
    const dist = join(ROOT, 'dist')
    rmSync(dist, { recursive: true, force: true })
    renameSync(made, dist)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function compile(project: string, folder: string, ...options: string[]): void {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  // Parallel checkers would infer most types twice.
  const args = [tsc, '--singleThreaded', ...options, '--project', join(ROOT, project), '--outDir', folder]
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) throw new Error(`${project} does not compile`)
}

/**
 * The router's declaration contains every input and output. The request context, which would import the server's types and
 * those of its database libraries, is replaced by `object`: clients do not need it.
 */
function addClientTypes(types: string, made: string): void {
  compile('scripts/tsconfig.client-types.json', types, '--noCheck')
  const router = 'server/http/router.d.ts'
  const text = readFileSync(join(types, router), 'utf8').replace(
    /import\("\.\.\/platform\/api\/procedure\.ts"\)\.(RequestContext|DeclaredMeta)/g,
    'object',
  )
  const left = /(?:from\s*|import\()["'](\.[^"']*)["']/.exec(text)?.[1]
  if (left) throw new Error(`the router's types still refer to ${left}`)
  mkdirSync(join(made, 'server/http'), { recursive: true })
  writeFileSync(join(made, router), text)
  cpSync(join(types, 'shared'), join(made, 'shared'), { recursive: true })
}

build()
