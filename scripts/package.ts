import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildClient } from './build-client.ts'
import { describePackages } from './describe-packages.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Builds the tarball of the service into `folder`; answers its path. */
export function packService(folder: string): string {
  return pack(ROOT, folder)
}

/** Builds the tarball of the client into `folder`; answers its path. */
export async function packClient(folder: string): Promise<string> {
  const staged = mkdtempSync(join(ROOT, 'node_modules', '.package-'))
  try {
    await buildClient(staged)
    return pack(staged, folder)
  } finally {
    rmSync(staged, { recursive: true, force: true })
  }
}

function pack(project: string, folder: string): string {
  // .npmrc turns scripts off, but the service's package is built by its prepack script.
  const args = ['pack', '--ignore-scripts=false', '--silent', '--pack-destination', folder]
  const printed = execFileSync('npm', args, {
    cwd: project,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return join(folder, printed.trim().split('\n').at(-1) ?? '')
}

/**
 * Builds what one release consists of, in dist/packages/. The client is the tarball that the service itself serves. The service's moves there
 * at the end, because building it replaces dist/.
 */
function main(): void {
  const scratch = mkdtempSync(join(ROOT, 'node_modules', '.packages-'))
  try {
    const service = packService(scratch)
    const packages = join(ROOT, 'dist', 'packages')
    mkdirSync(packages, { recursive: true })
    renameSync(service, join(packages, basename(service)))
    const { name, version } = JSON.parse(readFileSync(join(ROOT, 'shared/client/package.json'), 'utf8'))
    copyFileSync(join(ROOT, 'dist', 'client.tgz'), join(packages, `${name}-${version}.tgz`))
    describePackages(ROOT, packages)
    console.log(`Both packages, the service's bill of materials and the checksums are in ${packages}.`)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

if (import.meta.main) main()
