// database: none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Platform } from '../platform/platform.ts'
import { RefusedDeliveries } from './refused-deliveries.service.ts'

const it = suite('refused deliveries')

it('cost one write a domain and minute, however many come', async () => {
  let transactions = 0
  const warnings: unknown[] = []
  const platform = {
    clock: { now: () => 1 },
    database: {
      transaction() {
        transactions += 1
        return transactions > 2 ? Promise.reject(new Error('full')) : Promise.resolve()
      },
    },
    log: { warn: (facts: unknown) => warnings.push(facts) },
  } as unknown as Platform
  const refused = new RefusedDeliveries(platform)
  for (let round = 0; round < 3; round += 1) {
    for (let times = 0; times < 5000; times += 1) {
      refused.note(`shop-${times % 900}.example`, times % 2 === 0 ? 'wrong_signature' : 'no_signature')
    }
    await refused.flush()
    assert.is(transactions, 2, 'one for each reason')
  }
  refused.note('another.example', 'wrong_signature')
  await refused.flush()
  assert.is(warnings.length, 1, 'a note that cannot be written fails nothing')
})

it.run()
