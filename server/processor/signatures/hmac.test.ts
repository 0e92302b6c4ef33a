import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hmacSettingsSchema } from './hmac.ts'

test('hmac settings that leave a time or an id unsigned are refused', () => {
  const wrong = [
    { template: '{timestamp}' },
    { template: '{body}{body}' },
    { template: '{body}{nonce}' },
    { template: '{timestamp}.{body}' },
    { template: '{body}', timestamp_header: 'x-time' },
    { template: '{body}', id_header: 'x-id' },
    { template: '{id}.{body}' },
    { signature_header: 'not a header' },
    { surprise: true },
  ]
  for (const settings of wrong) {
    const parsed = hmacSettingsSchema.safeParse({ signature_header: 'x-signature', ...settings })
    assert.not(parsed.success, JSON.stringify(settings))
  }
  assert.ok(hmacSettingsSchema.safeParse({ signature_header: 'X-Signature' }).success)
})

test.run()
