import { readFileSync, writeFileSync } from 'node:fs'
import { withRoutes } from './routes-table.ts'

// node server/test/authorization/write-routes-table.ts: brings the table in ARCHITECTURE.md up to date.
const file = new URL('../../ARCHITECTURE.md', import.meta.url)
writeFileSync(file, withRoutes(readFileSync(file, 'utf8')))
