// database: none
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planted } from './plant.ts'
import { PLANTED_BUGS } from './planted-bugs.ts'
import { PROOFS } from './proofs.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const it = suite('planted bugs')

it('each applies at exactly one place of the code', async () => {
  assert.ok(PLANTED_BUGS.length >= 20)
  for (const bug of PLANTED_BUGS) {
    const text = await readFile(`${ROOT}${bug.file}`, 'utf8')
    assert.is.not(planted(text, bug), text, bug.name)
  }
})

it('each has a unique name and a proof that should catch it', () => {
  assert.is(new Set(PLANTED_BUGS.map(({ name }) => name)).size, PLANTED_BUGS.length)
  const proofs = PROOFS.map(({ name }) => name)
  for (const bug of PLANTED_BUGS) assert.ok(proofs.includes(bug.expectedIn), bug.name)
})

it('one that applies nowhere, twice or changes nothing is refused', () => {
  const bug = { name: 'x', file: 'a.ts', find: 'b', replace: 'c', expectedIn: 'race' }
  assert.is(planted('abc', bug), 'acc')
  assert.throws(() => planted('ac', bug), /fits 0 places/)
  assert.throws(() => planted('abab', bug), /fits 2 places/)
  assert.throws(() => planted('abc', { ...bug, replace: 'b' }), /changes nothing/)
})

it.run()
