// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isFinal } from './mail-delivery.rule.ts'

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

test.run()
