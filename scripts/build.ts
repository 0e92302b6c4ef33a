import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/**
 * Makes `dist/`: the service's JavaScript, since Node strips no types below node_modules, and the client's types. Built
 * aside and put in place at the end, so that whoever reads dist/ meanwhile finds the whole of it.
 */
function build(): void {
  const scratch = mkdtempSync(join(ROOT, 'node_modules', '.build-'))
  try {
    const made = join(scratch, 'dist')
    compile('tsconfig.build.json', made)
    // Bodies and manifests are read beside the code that fills them; the databases are for tests only.
    const databases = join(ROOT, 'fixtures', 'databases')
    cpSync(join(ROOT, 'fixtures'), join(made, 'fixtures'), {
      recursive: true,
      filter: (path) => !path.endsWith('.ts') && path !== databases,
    })
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
  // Several checkers would each work out most of the same types, and take twice as long of the processors' time.
  const args = [tsc, '--singleThreaded', ...options, '--project', join(ROOT, project), '--outDir', folder]
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) throw new Error(`${project} does not compile`)
}

/**
 * The router's declaration spells out every input and output; the only thing in it that would drag the server's own
 * types along, and those of its database libraries, is the context of a request, which is nothing to a client.
 */
function addClientTypes(types: string, made: string): void {
  // All of it was checked when the service was compiled.
  compile('scripts/tsconfig.client-types.json', types, '--noCheck')
  const router = 'server/http/router.d.ts'
  const text = readFileSync(join(types, router), 'utf8').replace(
    /import\("\.\.\/platform\/procedure\.ts"\)\.(RequestContext|DeclaredMeta)/g,
    'object',
  )
  const left = /(?:from\s*|import\()["'](\.[^"']*)["']/.exec(text)?.[1]
  if (left) throw new Error(`the router's types still refer to ${left}`)
  mkdirSync(join(made, 'server/http'), { recursive: true })
  writeFileSync(join(made, router), text)
  cpSync(join(types, 'shared'), join(made, 'shared'), { recursive: true })
}

build()
