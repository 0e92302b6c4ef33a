import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SUMS = 'SHA256SUMS'

/**
 * Writes what a consumer checks beside the tarballs in `packages`: the service's software bill of materials (CycloneDX, from the
 * lockfile, so it lists the packages of every platform), and the SHA-256 of each file for `sha256sum -c SHA256SUMS`.
 */
export function describePackages(root: string, packages: string): void {
  const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const bill = billOfMaterials(root)
  // npm names it after the folder.
  bill.metadata.component.name = name
  writeFileSync(join(packages, `${name}-${version}.cdx.json`), `${JSON.stringify(bill, null, 2)}\n`)
  const files = readdirSync(packages).filter((file) => file !== SUMS)
  const sums = files.sort().map((file) => `${hash('sha256', readFileSync(join(packages, file)))}  ${file}\n`)
  writeFileSync(join(packages, SUMS), sums.join(''))
}

interface Bill {
  metadata: { component: { name: string } }
  components: { 'bom-ref': string; properties: { name: string }[] }[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

/** Without what only development needs: npm's own `--omit dev` also leaves out packages that both need. */
function billOfMaterials(root: string): Bill {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only']
  const printed = execFileSync('npm', args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const bill: Bill = JSON.parse(printed)
  const isDevelopment = ({ properties }: Bill['components'][number]) =>
    properties.some(({ name }) => name === 'cdx:npm:package:development')
  const dropped = new Set(bill.components.filter(isDevelopment).map((component) => component['bom-ref']))
  return {
    ...bill,
    components: bill.components.filter((component) => !isDevelopment(component)),
    dependencies: bill.dependencies
      .filter(({ ref }) => !dropped.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => !dropped.has(one)) })),
  }
}
