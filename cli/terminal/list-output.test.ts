// database: none
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { WholeText } from './list-output.ts'

/** What `work` writes to stdout, with temporary files in a folder of their own. */
async function printed(work: (folder: string) => Promise<void>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-whole-text-'))
  const { TMPDIR } = process.env
  const { write } = process.stdout
  const pieces: Buffer[] = []
  process.env.TMPDIR = folder
  process.stdout.write = (piece: string | Uint8Array) => pieces.push(Buffer.from(piece)) > 0
  try {
    await work(folder)
  } finally {
    process.stdout.write = write
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
    rmSync(folder, { recursive: true })
  }
  return Buffer.concat(pieces).toString('utf8')
}

for (const lines of [0, 3, 40_000]) {
  test(`a text of ${lines} lines goes out whole, at the end only, and leaves no file`, async () => {
    const line = `${'روپے 4,999 – '.repeat(4)}\n`
    const text = await printed(async (folder) => {
      const whole = new WholeText()
      for (let at = 0; at < lines; at += 1) whole.add(line)
      assert.equal(readdirSync(folder), [])
      process.stdout.write('first|')
      await whole.print()
    })
    assert.ok(text === `first|${line.repeat(lines)}`)
  })
}

test.run()
