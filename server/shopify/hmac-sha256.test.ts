import { createHmac, createSecretKey } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { hmacSha256 } from './hmac-sha256.ts'

const standard = (secret: Uint8Array, message: Uint8Array) =>
  createHmac('sha256', secret).update(message).digest('hex')

test('is the standard one, whatever the secret and the message', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 130 }),
      fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 4 }),
      (secret, messages) => {
        const key = createSecretKey(secret)
        // Several by one key, a shorter one behind a longer one too: nothing of the last may be left.
        for (const message of messages) {
          assert.is(hmacSha256(key, Buffer.from(message)).toString('hex'), standard(secret, message))
        }
      },
    ),
  )
})

test('is the standard one at the edges of a block and of what is hashed in one go', () => {
  for (const secretLength of [0, 1, 63, 64, 65, 200]) {
    const secret = Buffer.alloc(secretLength, 7)
    const key = createSecretKey(secret)
    for (const length of [0, 1, 63, 64, 65, 65_535, 65_536, 65_537, 2_000_000]) {
      const message = Buffer.alloc(length, 9)
      assert.is(
        hmacSha256(key, message).toString('hex'),
        standard(secret, message),
        `${secretLength}, ${length}`,
      )
    }
  }
})

test('two answers do not share their bytes', () => {
  const key = createSecretKey('secret', 'utf8')
  const first = hmacSha256(key, Buffer.from('one'))
  const before = first.toString('hex')
  hmacSha256(key, Buffer.from('two'))
  assert.is(first.toString('hex'), before)
})

test.run()
