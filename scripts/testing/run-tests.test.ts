// database: none
// mostly waits
import { watch } from 'node:fs'
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type TinyProject, tinyProject } from './tiny-project.ts'

const IMPORTS = "import { test } from 'uvu'\nimport * as assert from 'uvu/assert'\n"
const PASSING = `${IMPORTS}test('one', () => assert.is(1, 1))\ntest('two', () => {})\ntest.run()\n`
const FAILING = `${IMPORTS}test('fine', () => {})\ntest('sums', () => assert.is(1 + 1, 3))\ntest.run()\n`
const NEVER = 'await new Promise(() => setInterval(() => {}, 1000))\n'

async function withProject(files: Record<string, string>, use: (project: TinyProject) => Promise<void>) {
  const project = await tinyProject(files)
  try {
    await use(project)
  } finally {
    await project.remove()
  }
}

test('counts tests, not files, and says so in the last line', async () => {
  await withProject({ 'server/a.test.ts': PASSING, 'cli/b.test.ts': PASSING }, async ({ start }) => {
    const { code, lastLine, output } = await start([])
    assert.is(lastLine, '4 passed, 0 failed')
    assert.is(code, 0)
    assert.match(output, /ok {4}server\/a\.test\.ts {2}2 passed, 0 failed {2}\d+\.\d\d s/)
  })
})

test('a failing test fails the run and is shown in full', async () => {
  await withProject({ 'server/a.test.ts': PASSING, 'server/b.test.ts': FAILING }, async ({ start }) => {
    const { code, lastLine, output } = await start([])
    assert.is(lastLine, '3 passed, 1 failed')
    assert.is(code, 1)
    assert.match(output, 'FAIL  server/b.test.ts  1 passed, 1 failed')
    assert.match(output, '"sums"')
  })
})

test('filters choose files by a part of their path', async () => {
  await withProject({ 'server/a.test.ts': PASSING, 'server/b.test.ts': FAILING }, async ({ run }) => {
    assert.is((await run(['a.test'])).lastLine, '2 passed, 0 failed')
    const nothing = await run(['no-such-file'])
    assert.is(nothing.lastLine, '0 passed, 1 failed')
    assert.is(nothing.code, 1)
  })
})

test('a file without tests, or that forgets to run them, is a failure', async () => {
  const files = { 'server/a.test.ts': IMPORTS, 'server/b.test.ts': `${IMPORTS}test('forgotten', () => {})\n` }
  await withProject(files, async ({ run }) => {
    const { code, lastLine, output } = await run()
    assert.is(lastLine, '0 passed, 2 failed')
    assert.is(code, 1)
    assert.match(output, 'server/a.test.ts ran no tests')
  })
})

test('a file that crashes is a failure beside what it counted', async () => {
  const files = {
    'server/early.test.ts': "throw new Error('broken at the top')\n",
    'server/late.test.ts': `${PASSING}process.on('exit', () => { process.exitCode = 3 })\n`,
    'server/killed.test.ts': `${IMPORTS}test('x', () => process.kill(process.pid, 'SIGKILL'))\ntest.run()\n`,
    'server/quits.test.ts': `${IMPORTS}test('x', () => process.exit(0))\ntest.run()\n`,
  }
  await withProject(files, async ({ run }) => {
    const { code, lastLine, output } = await run()
    assert.is(lastLine, '2 passed, 4 failed')
    assert.is(code, 1)
    assert.match(output, 'broken at the top')
    assert.match(output, 'server/late.test.ts ended with exit code 3 although its tests passed')
    assert.match(output, 'server/killed.test.ts crashed: killed by SIGKILL')
    assert.match(output, 'server/quits.test.ts crashed: exit code 1')
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

test('skipped tests are counted and named', async () => {
  const skipping = `${IMPORTS}test.skip('waits for the bank', () => {})\ntest('one', () => {})\ntest.run()\n`
  const silent = `${IMPORTS}console.log('skipped: no locale here')\ntest.skip()\ntest.skip()\ntest.run()\n`
  await withProject({ 'server/a.test.ts': skipping, 'server/b.test.ts': silent }, async ({ run }) => {
    const { code, lastLine, output } = await run()
    assert.is(lastLine, '1 passed, 0 failed, 3 skipped')
    assert.is(code, 0)
    assert.match(output, 'skipped: waits for the bank')
    assert.match(output, 'skipped: no locale here')
    assert.match(output, 'skipped: 1 without a reason')
  })
})

test('what a passing file says of its size is shown', async () => {
  const counting = `${IMPORTS}console.log('\\nsize: 424 cells')\nconsole.log('of no account')\ntest('one', () => {})\ntest.run()\n`
  await withProject({ 'server/a.test.ts': counting }, async ({ run }) => {
    const { output } = await run()
    assert.match(output, '      424 cells')
    assert.not.match(output, 'of no account')
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
    const { code, lastLine, output } = await interrupt('SIGINT', () => appears(root, 'own.pid'))
    assert.is(code, 130)
    assert.is(lastLine, '0 passed, 2 failed')
    assert.match(output, 'the run was interrupted')
    assert.not.ok(await isRunning(await readFile(join(root, 'own.pid'), 'utf8')))
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
  try {
    process.kill(Number(pid), 0)
  } catch {
    return false
  }
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  return stat === null || !/\) [ZX] /.test(stat)
}

/** Waits until a file exists and has its content. */
async function appears(root: string, name: string): Promise<void> {
  const complete = async () => (await readFile(join(root, name), 'utf8').catch(() => '')) !== ''
  const watcher = watch(root)
  try {
    await new Promise<void>((resolve, reject) => {
      const look = () => void complete().then((done) => done && resolve(), reject)
      watcher.on('change', look)
      look()
    })
    await access(join(root, name))
  } finally {
    watcher.close()
  }
}

test.run()
