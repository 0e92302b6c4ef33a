import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describePackages } from './describe-packages.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Builds the tarball of the service into `folder`; answers its path. */
export function packService(folder: string): string {
  // .npmrc turns scripts off, but the service's package is built by its prepack script.
  const args = ['pack', '--ignore-scripts=false', '--silent', '--pack-destination', folder]
  const printed = execFileSync('npm', args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return join(folder, printed.trim().split('\n').at(-1) ?? '')
}

/** Builds the tarball, which moves to dist/packages/ at the end, because building it replaces dist/. */
function main(): void {
  const scratch = mkdtempSync(join(ROOT, 'node_modules', '.packages-'))
  try {
    const tarball = packService(scratch)
    const packages = join(ROOT, 'dist', 'packages')
    mkdirSync(packages, { recursive: true })
    renameSync(tarball, join(packages, basename(tarball)))
    describePackages(ROOT, packages)
    console.log(`The package, its bill of materials and its checksums are in ${packages}.`)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

if (import.meta.main) main()
