// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasFailed, type RecordWord, wordOf } from './record-word.rule.ts'

const TABLE: Record<RecordWord, string[]> = {
  open: ['open', 'processing', 'Pending'],
  paid: ['paid', 'SETTLED'],
  failed: ['failed', 'rejected', 'cancelled', 'canceled', 'void', 'Void', 'expired', 'returned', 'reversed'],
  unclear: ['', 'on_hold', 'failed?', 'constructor'],
}

for (const [word, statuses] of Object.entries(TABLE)) {
  test(`${statuses.join(', ')}: ${word}`, () => {
    for (const status of statuses) {
      assert.is(wordOf({ status }), word, status)
      assert.is(hasFailed({ status }), word === 'failed', status)
    }
  })
}

test.run()
