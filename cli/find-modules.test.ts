// database: none
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Findings } from './test/compare-findings.ts'
import { environmentOf } from './test/run-affiliate.ts'

const COMPARE = new URL('test/compare-findings.ts', import.meta.url).href
const MAIN = fileURLToPath(new URL('main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'affiliate-find-modules-'))
test.after(() => rmSync(folder, { recursive: true, force: true }))

/** Runs a command to its end, or to `until` in what it prints, and answers where its modules were found. */
async function findingsOf(args: string[], until: string): Promise<Findings> {
  const file = join(folder, `${args[0]}.json`)
  const settings = { HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'warn', DATA_DIR: folder, FINDINGS: file }
  const database = { DATABASE_URL: `sqlite:${join(folder, 'affiliate.db')}` }
  const child = spawn(process.execPath, ['--import', COMPARE, MAIN, ...args], {
    cwd: folder,
    env: environmentOf({ ...settings, ...database }),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
    if (printed.includes(until)) child.kill('SIGTERM')
  })
  const [code] = await ended
  assert.is(code, 0, printed)
  return JSON.parse(readFileSync(file, 'utf8'))
}

test('a start finds its modules where Node does, most of them without asking it', async () => {
  // The first one migrates, for which there are modules of its own.
  for (const _start of ['first', 'next']) {
    const { otherwise, unasked } = await findingsOf(['serve', '--json'], '"url"')
    assert.equal(otherwise, [])
    assert.ok(unasked > 1500, `${unasked} imports`)
  }
})

test('so does a command', async () => {
  const { otherwise, unasked } = await findingsOf(['users', 'list', '--json'], '\0')
  assert.equal(otherwise, [])
  assert.ok(unasked > 300, `${unasked} imports`)
})

test.run()
