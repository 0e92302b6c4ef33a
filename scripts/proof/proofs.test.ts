// database: none
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { describeTest, listFiles, TEST_ROOTS } from '../testing/find-tests.ts'
import type { FileResult } from '../testing/run-file.ts'
import { PROOFS } from './proofs.ts'
import { proofHolds } from './table.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const parts = PROOFS.flatMap(({ files }) => files)

test('every file that proofs run, or run whole, belongs to a proof, and every proof has files', async () => {
  const paths = (await listFiles(ROOT, TEST_ROOTS)).filter((path) => path.endsWith('.test.ts'))
  for (const path of paths) {
    const text = await readFile(`${ROOT}${path}`, 'utf8')
    if (describeTest(path, text).proofOnly || / from '.*\/market-suites\.ts'/.test(text))
      assert.ok(
        parts.some((part) => path.includes(part)),
        `${path} runs nowhere, or not whole`,
      )
  }
  for (const part of parts)
    assert.ok(
      paths.some((path) => path.includes(part)),
      `no file matches ${part}`,
    )
})

test('a proof holds if something passed, nothing failed, and no file was empty', () => {
  const empty = { path: 'server/a.test.ts', skipReasons: [], problem: null, output: '', took: 1, cpu: 1 }
  const fileWith = (counts: Partial<FileResult>): FileResult => {
    return { ...empty, passed: 0, failed: 0, skipped: 0, ...counts }
  }
  const passing = fileWith({ passed: 2 })
  const skipped = fileWith({ skipped: 1 })
  for (const files of [[passing], [passing, skipped]]) assert.ok(proofHolds(files))
  for (const files of [[], [skipped], [passing, fileWith({})], [passing, fileWith({ passed: 3, failed: 1 })]])
    assert.not.ok(proofHolds(files))
})

test.run()
