import { readFileSync, writeFileSync } from 'node:fs'
import { withRoutes } from './routes-table.ts'

// npm run routes:table: brings the table in ARCHITECTURE.md up to date.
const file = new URL('../../ARCHITECTURE.md', import.meta.url)
writeFileSync(file, withRoutes(readFileSync(file, 'utf8')))
