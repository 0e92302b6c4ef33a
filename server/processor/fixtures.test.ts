import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { MalformedEvent, readProcessorEvent } from './events.rule.ts'
import { GENERIC_PROCESSOR_EVENTS } from './events.settings.ts'

const FIXTURES = new URL('../../fixtures/', import.meta.url)
const VALUES: Record<string, string> = {
  invoice_id: 'inv_1',
  payout_id: 'po_1',
  reference: 'payout-1',
  payment_reference: 'pay_1',
  amount: '1250.00',
}

const manifest: { file: string; title: string; expect: { reading: string } }[] = JSON.parse(
  readFileSync(new URL('processor.manifest.json', FIXTURES), 'utf8'),
)

test('the manifest names each processor fixture once', () => {
  const files = readdirSync(new URL('processor/', FIXTURES)).sort()
  assert.equal(manifest.map(({ file }) => file).sort(), files)
})

for (const { file, title, expect } of manifest) {
  test(`${file}: ${title}`, () => {
    const template = readFileSync(new URL(`processor/${file}`, FIXTURES), 'utf8')
    const text = template.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => VALUES[name] ?? whole)
    assert.not.match(text, /\{\{/)
    assert.is(readingOf(JSON.parse(text)), expect.reading)
  })
}

function readingOf(body: unknown): string {
  try {
    return readProcessorEvent(body, GENERIC_PROCESSOR_EVENTS).kind
  } catch (error) {
    assert.instance(error, MalformedEvent)
    return 'malformed'
  }
}

test.run()
