// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isSameTitle } from './account-title.rule.ts'

test('case, accents, spaces and punctuation do not make another title', () => {
  for (const title of ['SANA KHAN', 'Sana Khan', ' sana  khan.', 'Sana-Khan', 'Saná Khan', 'SANAKHAN']) {
    assert.ok(isSameTitle('Sana Khan', title), title)
  }
})

test('other letters or digits do, and an empty title is the same as none', () => {
  for (const title of ['Sana Kahn', 'Sana', 'Khan Sana', 'Sana Khan 2', '', '  ']) {
    assert.not.ok(isSameTitle('Sana Khan', title), title)
  }
  assert.not.ok(isSameTitle('...', '---'))
  assert.ok(isSameTitle('ثنا خان', 'ثنا  خان'))
})

test.run()
