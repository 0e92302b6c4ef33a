// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pluck } from '../../server/test/testkit/pluck.ts'
import { describeTest, findTests } from './find-tests.ts'
import { withProject } from './tiny-project.ts'
import { readSkipReasons, readTally } from './uvu-output.ts'

test('a file states its time limit, its length and its databases in the comments at its top', () => {
  const text = '// long\n// time limit: 300 s\n// database: none\nimport x\n'
  assert.equal(describeTest('server/a.test.ts', text), {
    path: 'server/a.test.ts',
    limit: 300_000,
    long: true,
    measured: false,
    database: false,
    waits: false,
    shares: true,
    proofOnly: false,
    sized: false,
    skips: [],
  })
  const { limit, long, database, shares } = describeTest('server/a.test.ts', `import x\n${text}`)
  assert.equal([limit, long, database, shares], [1_200_000, false, true, true])
  const top = (line: string) => describeTest('server/a.test.ts', `${line}\nimport x\n`)
  assert.not.ok(top('// own process').shares)
  assert.ok(top('// mostly waits').waits)
  assert.ok(top("import { fc } from './testkit/property.ts'").sized)
  assert.ok(top('// proof only\n// database: none').proofOnly)
})

test('rules and shared code need no database, and their tests are measured', () => {
  for (const path of ['server/sales/commission.rule.test.ts', 'shared/money.test.ts']) {
    const { database, measured } = describeTest(path, '')
    assert.equal({ database, measured }, { database: false, measured: true })
  }
})

test('files start in a fixed order: without a database first, of these the measured ones, then long ones, then by name', async () => {
  const files = {
    'server/b.test.ts': '',
    'server/a.test.ts': '',
    'server/z.rule.test.ts': '',
    'cli/pure.test.ts': '// database: none\n',
    'cli/slow.test.ts': '// long\n',
    'server/not-a-test.ts': '',
    'elsewhere/c.test.ts': '',
    'server/proof.test.ts': '// proof only\n',
  }
  await withProject(files, async ({ root }) => {
    assert.equal(pluck(await findTests(root, ['proof']), 'path'), ['server/proof.test.ts'])
    assert.equal(pluck(await findTests(root), 'path'), [
      ...['server/z.rule.test.ts', 'cli/pure.test.ts', 'cli/slow.test.ts', 'server/a.test.ts'],
      'server/b.test.ts',
    ])
  })
})

test('the tail of uvu is read with colours, and several tails add up', () => {
  const tail = (total: number, passed: number) =>
    `\n  Total:     ${total}\u001b[32m\n  Passed:    ${passed}\u001b[39m\n  Skipped:   1\n  Duration:  1ms\n\n`
  assert.equal(readTally(tail(3, 2) + tail(4, 4)), { total: 7, passed: 6, skipped: 2 })
  assert.is(readTally('  Total:     3\n'), null)
  assert.equal(readSkipReasons('skipped: no disk\nnot skipped: x\n'), ['no disk'])
})

test.run()
