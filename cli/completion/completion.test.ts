// database: none
import { execFileSync, spawnSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { buildProgram } from '../program.ts'
import { leavesOf } from '../test/command-tree.ts'
import { runHere } from '../test/run-here.ts'
import { bashCompletion, fishCompletion, zshCompletion } from './scripts.ts'
import { wordTree } from './word-tree.ts'

const it = suite('completion')
const nodes = wordTree(buildProgram())
const missing = (shell: string) => spawnSync(shell, ['--version'], { stdio: 'ignore' }).status !== 0
it('knows every command, with its options and their words', () => {
  const paths = nodes.map(({ path }) => path)
  for (const { name } of leavesOf(buildProgram())) assert.ok(paths.includes(name), name)
  const list = nodes.find(({ path }) => path === 'users list')
  const role = list?.options.find(({ flag }) => flag === '--role')
  assert.equal(role?.values, ['merchant', 'creator', 'admin'])
  assert.ok(list?.options.some(({ flag, takesValue }) => flag === '--json' && !takesValue))
})

it('is printed for each shell, or as a document', async () => {
  for (const [shell, script] of Object.entries({
    bash: bashCompletion(nodes),
    zsh: zshCompletion(nodes),
    fish: fishCompletion(nodes),
  })) {
    assert.is((await runHere(['completion', shell])).stdout, script)
    assert.is(JSON.parse((await runHere(['completion', shell, '--json'])).stdout).script, script)
  }
})

/** What bash offers for the last of these words. */
function bashOffers(...words: string[]): string[] {
  const line = ['affiliate', ...words].map((word) => `'${word}'`).join(' ')
  const script = `${bashCompletion(nodes)}
    COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _affiliate; printf '%s\\n' "\${COMPREPLY[@]}"`
  const output = execFileSync('bash', ['--norc', '--noprofile', '-c', script], { encoding: 'utf8' })
  return output.split('\n').filter(Boolean)
}

it('works in bash', () => {
  assert.equal(bashOffers('us'), ['users'])
  assert.equal(bashOffers('users', 's'), ['show', 'set-password', 'suspend'])
  assert.equal(bashOffers('users', 'list', '--ro'), ['--role'])
  assert.equal(bashOffers('users', 'list', '--role', ''), ['merchant', 'creator', 'admin'])
  assert.equal(bashOffers('--json', 'flagged', 're'), ['resolve'])
  // A value that reads like a command is a value.
  assert.equal(bashOffers('--database-url', 'users', 'led'), ['ledger'])
  assert.ok(bashOffers('ledger', 'verify', '--').includes('--against'))
  assert.not(bashOffers('billing', '').some((word) => word.startsWith('-')))
})

if (missing('zsh')) it.skip('there is no zsh here to try its completion in', () => {})
else it('can be read by zsh', zshReadsIt)

function zshReadsIt() {
  const script = `compdef() { :; }\n${zshCompletion(nodes)}\n_affiliate_values 'users list --role'; print -l $reply`
  const output = execFileSync('zsh', ['-f', '-c', script], { encoding: 'utf8' })
  assert.equal(output.trim().split('\n'), ['merchant', 'creator', 'admin'])
}

if (missing('fish')) it.skip('there is no fish here to try its completion in', () => {})
else it('works in fish', fishCompletes)

function fishOffers(line: string): (string | undefined)[] {
  const script = `${fishCompletion(nodes)}\ncomplete -C '${line}'`
  const output = execFileSync('fish', ['--no-config', '-c', script], { encoding: 'utf8' })
  return output.split('\n').flatMap((one) => (one === '' ? [] : [one.split('\t')[0]]))
}

function fishCompletes() {
  assert.equal(fishOffers('affiliate users s'), ['set-password', 'suspend'])
  assert.equal(fishOffers('affiliate users list --role m'), ['merchant'])
}

it.run()
