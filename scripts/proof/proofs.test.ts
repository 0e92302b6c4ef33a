// database: none
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { describeTest, listFiles, TEST_ROOTS } from '../testing/find-tests.ts'
import { PROOFS } from './proofs.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const parts = PROOFS.flatMap(({ files }) => files)

test('every file that only proofs run belongs to a proof, and every proof has files', async () => {
  const paths = (await listFiles(ROOT, TEST_ROOTS)).filter((path) => path.endsWith('.test.ts'))
  for (const path of paths) {
    const { proofOnly } = describeTest(path, await readFile(`${ROOT}${path}`, 'utf8'))
    if (proofOnly)
      assert.ok(
        parts.some((part) => path.includes(part)),
        `${path} runs nowhere`,
      )
  }
  for (const part of parts)
    assert.ok(
      paths.some((path) => path.includes(part)),
      `no file matches ${part}`,
    )
})

test.run()
