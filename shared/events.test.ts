import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isMailEvent, MAIL_EVENT_NAMES, MAIL_EVENTS } from './events.ts'

test('each event of a role has one name in the list of all', () => {
  assert.is(new Set(MAIL_EVENT_NAMES).size, MAIL_EVENT_NAMES.length)
  for (const name of [...MAIL_EVENTS.merchant, ...MAIL_EVENTS.creator]) assert.ok(isMailEvent(name), name)
})

test('an event that only webhooks have, or a mail about the account, is none', () => {
  for (const name of ['sale.rejected', 'balance.released', 'password_changed', '']) {
    assert.not.ok(isMailEvent(name), name)
  }
})

test.run()
