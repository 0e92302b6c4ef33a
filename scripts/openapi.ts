import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { openApiDocument } from '../server/http/openapi/openapi.ts'
import { appRouter } from '../server/http/router.ts'

/** Writes the OpenAPI document: `node scripts/openapi.ts [FILE]`. */
const file = process.argv[2] ?? 'dist/openapi.json'
mkdirSync(dirname(file), { recursive: true })
writeFileSync(file, `${JSON.stringify(openApiDocument(appRouter, '/'), null, 2)}\n`)
