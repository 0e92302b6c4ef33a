import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Logger } from '../../platform/log.ts'
import { WebhookRefusals } from './webhook-refusals.ts'

const MORE = 'more webhooks refused in the last minute'

function refusals() {
  const lines: Record<string, unknown>[] = []
  const warn = (facts: object, message: string) => lines.push({ ...facts, message })
  const subject = new WebhookRefusals({ warn } as unknown as Logger)
  const note = (domain: string | null, reason = 'wrong HMAC', times = 1) => {
    for (let time = 0; time < times; time += 1)
      subject.note({ requestId: 'r1', route: '/webhooks/store-sales', domain, reason })
  }
  return { subject, lines, note }
}

const it = suite('the log of refused webhooks')

it('has one line per domain and reason a minute, and one for the rest with their number', () => {
  const { subject, lines, note } = refusals()
  note('a.example', 'wrong HMAC', 1000)
  note('a.example', 'no HMAC')
  note(null)
  const about = { domain: 'a.example', reason: 'wrong HMAC' }
  const request = { requestId: 'r1', route: '/webhooks/store-sales' }
  assert.equal(lines[0], { ...request, ...about, message: 'webhook refused' })
  assert.is(lines.length, 3)
  subject.flush()
  assert.equal(lines.slice(3), [{ ...about, refused: 999, message: MORE }])
  note('a.example')
  assert.is(lines.length, 5)
  subject.flush()
})

it('stays short, however many domains are claimed, and shows nothing that a terminal obeys', () => {
  const { subject, lines, note } = refusals()
  note(`\u001b[2J\u202e${'x'.repeat(5000)}`)
  assert.is(lines[0]?.domain, `?[2J?${'x'.repeat(95)}`)
  for (let index = 0; index < 5000; index += 1) note(`d${index}.example`)
  assert.is(lines.length, 100)
  subject.flush()
  assert.equal(lines.slice(100), [{ domain: 'others', reason: 'various', refused: 4901, message: MORE }])
})

it.run()
