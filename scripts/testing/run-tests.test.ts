// database: none
// mostly waits
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isAlive } from '../../cli/test/run-affiliate.ts'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { withProject } from './tiny-project.ts'

const IMPORTS = "import { test } from 'uvu'\nimport * as assert from 'uvu/assert'\n"
const PASSING = `${IMPORTS}test('one', () => assert.is(1, 1))\ntest('two', () => {})\ntest.run()\n`
const FAILING = `${IMPORTS}test('fine', () => {})\ntest('sums', () => assert.is(1 + 1, 3))\ntest.run()\n`
const NEVER = 'await new Promise(() => setInterval(() => {}, 1000))\n'

test('counts tests, not files, and says so in the last line; sizes and skipped tests are shown', async () => {
  const skipping = `${IMPORTS}test.skip('waits for the bank', () => {})\ntest('one', () => {})\ntest.run()\n`
  const silent = `${IMPORTS}console.log('skipped: no locale here')\ntest.skip()\ntest.skip()\ntest.run()\n`
  const counting = `${IMPORTS}console.log('\\nsize: 424 cells')\nconsole.log('of no account')\ntest('one', () => {})\ntest.run()\n`
  const files = {
    'server/a.test.ts': PASSING,
    'cli/b.test.ts': PASSING,
    'server/skipping.test.ts': skipping,
    'server/silent.test.ts': silent,
    'server/counting.test.ts': counting,
  }
  await withProject(files, async ({ start, run }) => {
    const { code, lastLine, output } = await start([])
    assert.equal([code, lastLine], [0, '6 passed, 0 failed, 3 skipped'])
    for (const shown of [
      /ok {4}server\/a\.test\.ts {2}2 passed, 0 failed {2}\d+\.\d\d s/,
      /skipped: waits for the bank/,
      /skipped: no locale here/,
      /skipped: 1 without a reason/,
      / {6}424 cells/,
    ])
      assert.match(output, shown)
    assert.not.match(output, 'of no account')
    assert.match(output, /^All 5 test files: about \d+ minutes on two cores\.\n/)
    assert.is((await run(['a.test'])).lastLine, '2 passed, 0 failed', 'a part of the path')
    const nothing = await run(['no-such-file'])
    assert.equal([nothing.code, nothing.lastLine], [1, '0 passed, 1 failed'])
  })
})

test('a file that fails, crashes, has no tests or forgets to run them fails the run beside what it counted', async () => {
  const files = {
    'server/a.test.ts': PASSING,
    'server/b.test.ts': FAILING,
    'server/none.test.ts': IMPORTS,
    'server/forgets.test.ts': `${IMPORTS}test('forgotten', () => {})\n`,
    'server/early.test.ts': "throw new Error('broken at the top')\n",
    'server/late.test.ts': `${PASSING}process.on('exit', () => { process.exitCode = 3 })\n`,
    'server/killed.test.ts': `${IMPORTS}test('x', () => process.kill(process.pid, 'SIGKILL'))\ntest.run()\n`,
    'server/quits.test.ts': `${IMPORTS}test('x', () => process.exit(0))\ntest.run()\n`,
  }
  await withProject(files, async ({ start }) => {
    const { code, lastLine, output } = await start([])
    assert.equal([code, lastLine], [1, '5 passed, 7 failed'])
    for (const said of [
      'FAIL  server/b.test.ts  1 passed, 1 failed',
      '"sums"',
      'server/none.test.ts ran no tests',
      'server/forgets.test.ts ran no tests',
      'broken at the top',
      'server/late.test.ts ended with exit code 3 although its tests passed',
      'server/killed.test.ts crashed: killed by SIGKILL',
      'server/quits.test.ts crashed: exit code 1',
    ])
      assert.match(output, said)
  })
})

test('neighbors share a process unless one says otherwise, and one that changes it fails', async () => {
  const telling = `${IMPORTS}test('process', () => assert.match(process.argv[1], process.env.WANTED))\ntest.run()\n`
  const files = { 'server/a.test.ts': telling, 'server/b.test.ts': telling }
  await withProject(files, async ({ run }) => {
    assert.is((await run([], { WANTED: 'shared-process' })).lastLine, '2 passed, 0 failed')
  })
  await withProject({ ...files, 'server/a.test.ts': `// own process\n${telling}` }, async ({ run }) => {
    assert.is((await run([], { WANTED: 'test.ts' })).lastLine, '2 passed, 0 failed')
  })
  const changing = `process.env.LEFT = 'behind'\n${PASSING}`
  await withProject({ 'server/a.test.ts': changing, 'server/b.test.ts': PASSING }, async ({ run }) => {
    const { lastLine, output } = await run()
    assert.is(lastLine, '4 passed, 1 failed')
    assert.match(output, 'server/a.test.ts passes alone, but not in one process with server/b.test.ts')
    assert.match(output, 'leaves these environment variables changed: LEFT')
  })
})

/** A file that reaches its time limit has come to its end long before: it usually takes a hundredth of that. */
const LIMITED = '// own process\n// time limit: 20 s\n'

test('what a file leaves running is ended, and is a failure', async () => {
  const hanging = `${LIMITED}import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
const child = spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)'])
writeFileSync('child.pid', String(child.pid))
console.log('last words')
${NEVER}`
  const open = `${LIMITED}${PASSING}setInterval(() => {}, 1000)\n`
  const leaving = `${LIMITED}import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
${PASSING}
const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
child.unref()
writeFileSync('left.pid', String(child.pid))
`
  const files = { 'server/a.test.ts': hanging, 'server/b.test.ts': open, 'server/c.test.ts': leaving }
  await withProject(files, async ({ root, run }) => {
    const { code, lastLine, output } = await run(['--jobs', '3'])
    // What has passed still counts.
    assert.is(lastLine, '4 passed, 3 failed')
    assert.is(code, 1)
    assert.match(output, `server/a.test.ts did not end within ${20} s`)
    assert.match(output, 'last words')
    assert.match(output, 'server/c.test.ts left processes running')
    for (const name of ['child.pid', 'left.pid'])
      assert.not.ok(await isRunning(await readFile(join(root, name), 'utf8')), name)
  })
})

test('the database address reaches the files, except when PostgreSQL is left out', async () => {
  const asking = `${IMPORTS}
test('address', () => assert.is(process.env.TEST_POSTGRES_URL, process.env.WANTED || undefined))
test('left out', () => assert.is(process.env.TEST_SQLITE_ONLY, process.env.WANTED ? undefined : '1'))
test.run()\n`
  await withProject({ 'server/a.test.ts': asking }, async ({ run }) => {
    const url = 'postgres://someone@127.0.0.1:1/books'
    assert.is((await run([], { TEST_POSTGRES_URL: url, WANTED: url })).lastLine, '2 passed, 0 failed')
    assert.is((await run(['--sqlite-only'], { TEST_POSTGRES_URL: url })).lastLine, '2 passed, 0 failed')
  })
})

test('where there is no PostgreSQL the files that need one fail with the reason', async () => {
  const elsewhere = "--import=data:text/javascript,Object.defineProperty(process,'arch',{value:'abacus'})"
  const files = { 'server/a.test.ts': PASSING, 'server/b.rule.test.ts': PASSING }
  await withProject(files, async ({ run }) => {
    const { code, lastLine, output } = await run([], { TEST_POSTGRES_URL: '', NODE_OPTIONS: elsewhere })
    assert.is(lastLine, '2 passed, 1 failed')
    assert.is(code, 1)
    assert.match(output, 'server/a.test.ts could not be run')
    assert.match(output, 'there is no PostgreSQL for this platform')
  })
})

test('an interrupted run ends its children and reports a failure', async () => {
  const hanging = `import { writeFileSync } from 'node:fs'\nwriteFileSync('own.pid', String(process.pid))\n${NEVER}`
  await withProject({ 'server/a.test.ts': hanging, 'package.json': '{}' }, async ({ root, interrupt }) => {
    const pid = () => readFile(join(root, 'own.pid'), 'utf8').catch(() => '')
    const { code, lastLine, output } = await interrupt('SIGINT', () => eventually(pid))
    assert.is(code, 130)
    assert.is(lastLine, '0 passed, 2 failed')
    assert.match(output, 'the run was interrupted')
    assert.not.ok(await isRunning(await pid()))
  })
})

test('an unknown option prints the usage', async () => {
  await withProject({}, async ({ start }) => {
    const { code, output } = await start(['--jobs', 'many'])
    assert.is(code, 1)
    assert.match(output, '--jobs takes a whole number')
    assert.match(output, 'node scripts/test.ts [filters...]')
  })
})

async function isRunning(pid: string): Promise<boolean> {
  if (!isAlive(Number(pid))) return false
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  return stat === null || !/\) [ZX] /.test(stat)
}

test.run()
