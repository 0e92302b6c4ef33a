// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { withProject } from './tiny-project.ts'

const RULE = `export type Kind = 'small' | 'large'

/** Says which. */
export function kindOf(amount: number): Kind {
  if (amount > 100) {
    return 'large'
  }
  return 'small'
}
`
const testOf = (...amounts: number[]) => `import { test } from 'uvu'
import { kindOf } from './kind.rule.ts'
test('kinds', () => { ${amounts.map((amount) => `kindOf(${amount})`).join('; ')} })
test.run()
`

// The table of the report goes to the console.
const outcome = (files: Record<string, string>, args: string[] = []) =>
  withProject(files, ({ run, start }) => (args.includes('--coverage') ? start(args) : run(args)))

test('rules that their own tests cover whole count as one passed test', async () => {
  const { lastLine, output } = await outcome({
    'server/kinds/kind.rule.ts': RULE,
    'server/kinds/kind.rule.test.ts': testOf(1, 1000),
    'shared/words.ts': 'export interface Word { text: string }\n',
  })
  assert.is(lastLine, '2 passed, 0 failed')
  assert.match(output, 'coverage of 2 rule and shared files')
})

test('lines and branches that no own test runs, hidden ones and files without a test fail the run and are named', async () => {
  const { lastLine, output, code } = await outcome({
    'server/kinds/kind.rule.ts': RULE,
    'server/kinds/kind.rule.test.ts': testOf(1),
    'server/kinds/kinds.test.ts': testOf(1000),
    'server/hidden/kind.rule.ts': `/* c8 ignore next */\n${RULE}`,
    'server/hidden/kind.rule.test.ts': testOf(1, 1000),
    'server/bare/kind.rule.ts': RULE,
    'shared/lonely.ts': 'export const lonely = 1\n',
    'shared/sign.ts': "export const sign = (n: number) => (n < 0 ? '-' : '+')\n",
    'shared/sign.test.ts':
      "import { test } from 'uvu'\nimport { sign } from './sign.ts'\ntest('x', () => { sign(1) })\ntest.run()\n",
  })
  assert.equal([lastLine, code], ['4 passed, 1 failed', 1])
  for (const said of [
    /server\/kinds\/kind\.rule\.ts has lines that no own test runs: 6-7/,
    /server\/hidden\/kind\.rule\.ts hides lines from the coverage/,
    /server\/bare\/kind\.rule\.ts has no test of its own: server\/bare\/kind\.rule\.test\.ts/,
    /shared\/lonely\.ts is run by no rule test or shared test/,
    /shared\/sign\.ts has 1 of \d branches that no own test takes, at 1/,
  ])
    assert.match(output, said)
})

test('with filters there is no verdict; with --coverage there is a report of everything', async () => {
  const files = {
    'server/kinds/kind.rule.ts': RULE,
    'server/kinds/kind.rule.test.ts': testOf(1),
    'server/kinds/kinds.test.ts': testOf(1000),
  }
  assert.is((await outcome(files, ['kinds'])).lastLine, '2 passed, 0 failed')
  const { output, lastLine } = await outcome(files, ['kinds', '--coverage'])
  assert.is(lastLine, '2 passed, 0 failed')
  assert.match(output, /kind\.rule\.ts +\| +100 /)
})

test.run()
