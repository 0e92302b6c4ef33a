// proof only
// database: none
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { describePackages } from './describe-packages.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

test('packages have checksums that verify, and a bill of all that the service needs at run time', () => {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-packages-'))
  try {
    writeFileSync(join(folder, 'some.tgz'), 'a tarball')
    describePackages(ROOT, folder)
    const { name, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const file = `${name}-${version}.cdx.json`
    const verified = execFileSync('sha256sum', ['-c', 'SHA256SUMS'], { cwd: folder, encoding: 'utf8' })
    assert.is(verified, `${file}: OK\nsome.tgz: OK\n`)
    const text = readFileSync(join(folder, file), 'utf8')
    const { bomFormat, metadata, components } = JSON.parse(text) as {
      bomFormat: string
      metadata: { component: { name: string; version: string } }
      components: { name: string; version: string; hashes?: unknown[] }[]
    }
    assert.equal([bomFormat, metadata.component.name], ['CycloneDX', name])
    const listed = new Set(components.map((component) => `${component.name}@${component.version}`))
    const locked = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages as Record<
      string,
      { name?: string; version: string; dev?: boolean }
    >
    const needed = Object.entries(locked).filter(([path, { dev }]) => path !== '' && !dev)
    const names = needed.map(
      ([path, one]) => `${one.name ?? path.split('node_modules/').at(-1)}@${one.version}`,
    )
    assert.equal([...listed].sort(), [...new Set(names)].sort())
    assert.ok(components.every(({ hashes }) => hashes?.length))
    assert.not.ok(text.includes(ROOT))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test.run()
