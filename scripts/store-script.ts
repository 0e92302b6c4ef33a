import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'esbuild'

const FOLDER = new URL('../shared/store-script/', import.meta.url)

/** The script of `GET /store.js`, minified. */
export function minifiedStoreScript(): string {
  const source = readFileSync(new URL('store.js', FOLDER), 'utf8')
  return transformSync(source, { minify: true, target: 'es2020', legalComments: 'none', tsconfigRaw: {} })
    .code
}

/** Writes `store.min.js`, which the service serves: `npm run store-script`. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(new URL('store.min.js', FOLDER), minifiedStoreScript())
}
