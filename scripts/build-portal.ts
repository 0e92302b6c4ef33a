import { readFileSync } from 'node:fs'
import { basename, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PORTAL = join(ROOT, 'shared', 'client', 'portal')

/**
 * The portal's files by name: `index.html`, which holds the styles so that its first paint needs no other file, and the scripts, whose names
 * change with their content.
 */
export async function buildPortal(): Promise<Map<string, Buffer>> {
  const { outputFiles, metafile } = await build({
    entryPoints: ['main.ts', 'styles.css'].map((name) => join(PORTAL, name)),
    outdir: ROOT,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: ['es2024'],
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    write: false,
    metafile: true,
    absWorkingDir: ROOT,
    logLevel: 'warning',
  })
  const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]))
  const entryOf = (source: string) =>
    Object.keys(metafile.outputs).find((name) =>
      metafile.outputs[name]?.entryPoint?.endsWith(`/${source}`),
    ) ?? ''
  const styles = entryOf('styles.css')
  const withImports = (name: string): string[] => {
    const imports = metafile.outputs[name]?.imports.filter(({ kind }) => kind === 'import-statement') ?? []
    return [name, ...imports.flatMap(({ path }) => withImports(path))]
  }
  const preloads = [...new Set(withImports(entryOf('shell.tsx')))].map(
    (name) => `<link rel="modulepreload" href="/app/assets/${name}">`,
  )
  const page = readFileSync(join(PORTAL, 'index.html'), 'utf8')
    .replace('SCRIPT', `/app/assets/${entryOf('main.ts')}`)
    .replace('<style>', `${preloads.join('')}<style>`)
    .replace('<style></style>', () => `<style>${files.get(styles)?.toString().trim()}</style>`)
  return new Map([
    ['index.html', Buffer.from(page)],
    ...[...files].filter(([name]) => extname(name) === '.js'),
  ])
}
