// database: none
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { CHANGES } from './grants.ts'

const SERVER = fileURLToPath(new URL('..', import.meta.url))
/** Statements through the query builder, and as text. */
const STATEMENTS = [
  { change: 'update', pattern: /updateTable\('(\w+)'\)|\bupdate (\w+)(?: as \w+)? set\b/g },
  { change: 'delete', pattern: /deleteFrom\('(\w+)'\)|\bdelete from (\w+)/g },
] as const

test('every table that the service updates or deletes from has the privilege for it', () => {
  const files = globSync('**/*.ts', { cwd: SERVER }).filter(
    (file) => !/\.test\.ts$|^(test|migrations|processor\/sandbox)\//.test(file),
  )
  const used = new Set<string>()
  const missing: string[] = []
  for (const file of files) {
    const text = readFileSync(join(SERVER, file), 'utf8')
    for (const { change, pattern } of STATEMENTS) {
      for (const [, built, written] of text.matchAll(pattern)) {
        const table = (built ?? written ?? '') as keyof typeof CHANGES
        if (!(table in CHANGES)) continue
        used.add(`${change} ${table}`)
        if (!CHANGES[table].includes(change)) missing.push(`${file}: ${change} ${table}`)
      }
    }
  }
  // Entities and lease queues change further tables; tests that run as the service role cover those.
  assert.ok(used.size > 12, `${used.size}`)
  assert.equal(missing, [])
})

test('the journal is only ever added to', () => {
  const tables = ['ledger_entries', 'ledger_postings', 'ledger_seal_heads']
  for (const table of tables) assert.equal(CHANGES[table as keyof typeof CHANGES], [], table)
})

test.run()
