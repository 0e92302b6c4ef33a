import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPortal } from './build-portal.ts'
import { compile } from './compile.ts'
import { packClient } from './package.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/**
 * Writes `dist/`: the service's JavaScript (Node strips no types below node_modules), and the client package and the portal
 * that it serves. Replaces dist/ in one step. Checks no types: `npm run types` does.
 */
async function build(): Promise<void> {
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
    for (const folder of ['server/guides', 'server/http/pages'])
      cpSync(join(ROOT, folder), join(made, folder), { recursive: true })
    const storeScript = join('shared', 'store-script', 'store.min.js')
    cpSync(join(ROOT, storeScript), join(made, storeScript))
    renameSync(await packClient(scratch), join(made, 'client.tgz'))
    mkdirSync(join(made, 'portal'))
    for (const [name, text] of await buildPortal()) writeFileSync(join(made, 'portal', name), text)
    const dist = join(ROOT, 'dist')
    rmSync(dist, { recursive: true, force: true })
    renameSync(made, dist)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

await build()
