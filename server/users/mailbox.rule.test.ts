// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { mailboxOf } from './mailbox.rule.ts'

test('a mailbox has no label, and no dots at Gmail', () => {
  const same = [
    'ayeshakhan@gmail.com',
    'ayesha.khan@gmail.com',
    'a.y.e.s.h.a.khan+shop@gmail.com',
    'ayeshakhan+x+y@googlemail.com',
  ]
  assert.equal(new Set(same.map(mailboxOf)), new Set(['ayeshakhan@gmail.com']))
  assert.is(mailboxOf('ayesha.khan+shop@khan.pk'), 'ayesha.khan@khan.pk')
})

test('different people have different mailboxes', () => {
  assert.is.not(mailboxOf('ayesha.khan@khan.pk'), mailboxOf('ayeshakhan@khan.pk'))
  assert.is.not(mailboxOf('ayesha@gmail.com'), mailboxOf('ayesha@gmail.pk'))
  assert.is(mailboxOf('+ayesha@khan.pk'), '+ayesha@khan.pk')
  assert.is(mailboxOf('"a@b"+c@khan.pk'), '"a@b"@khan.pk')
})

test('a mailbox is its own mailbox, and no label changes it', () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9.]{0,20}[a-z]$/)
  const domain = fc.constantFrom('gmail.com', 'googlemail.com', 'outlook.com', 'khan.pk')
  fc.assert(
    fc.property(name, fc.stringMatching(/^[a-z0-9.+]{0,10}$/), domain, (local, label, at) => {
      const mailbox = mailboxOf(`${local}@${at}`)
      assert.is(mailboxOf(mailbox), mailbox)
      assert.is(mailboxOf(`${local}+${label}@${at}`), mailbox)
    }),
    { numRuns: 300 },
  )
})

test.run()
