// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isFinal, limitOf } from './mail-delivery.rule.ts'
import type { MailKind } from './mail-texts.ts'

test('only a 5xx about this mail is final', () => {
  for (const command of ['RCPT TO', 'DATA']) {
    assert.ok(isFinal({ responseCode: 550, command }), command)
    assert.not(isFinal({ responseCode: 451, command }), command)
    assert.not(isFinal({ command }), command)
  }
})

test('a 5xx that concerns all mail is not: the log-in, the greeting, STARTTLS, the sender', () => {
  for (const command of ['AUTH PLAIN', 'CONN', 'EHLO', 'STARTTLS', 'MAIL FROM', undefined]) {
    assert.not(isFinal({ responseCode: 535, command }), command)
  }
})

test('an address receives 5 links of a kind an hour, 50 mails about a kind of event a day, and 20 of any other kind', () => {
  const HOUR = 3_600_000
  const limits: [kind: MailKind, most: number, withinMs: number][] = [
    ['verify_email', 5, HOUR],
    ['password_reset', 5, HOUR],
    ['application.created', 50, 24 * HOUR],
    ['billing_cycle.closed', 50, 24 * HOUR],
    ['new_login', 20, 24 * HOUR],
    ['payout_destination_changed', 20, 24 * HOUR],
  ]
  for (const [kind, most, withinMs] of limits) assert.equal(limitOf(kind), { most, withinMs }, kind)
})

test.run()
