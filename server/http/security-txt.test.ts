// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readConfig } from '../platform/config.ts'
import { openWebTestbed } from '../test/testkit/web.ts'

const PATH = '/.well-known/security.txt'

test('security.txt names the contact and expires within a year', async () => {
  const bed = await openWebTestbed('sqlite', { SECURITY_CONTACT: 'mailto:security@example.pk' })
  try {
    const answer = await fetch(bed.base + PATH)
    assert.is(answer.status, 200)
    assert.is(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
    const text = await answer.text()
    assert.match(text, /^Contact: mailto:security@example\.pk$/m)
    const expires = Date.parse(/^Expires: (\S+)$/m.exec(text)?.[1] ?? '')
    const days = (expires - bed.clock.now()) / 86_400_000
    assert.ok(days > 30 && days < 365, `${days} days`)
  } finally {
    await bed.close()
  }
})

test('without a contact there is no security.txt', async () => {
  const bed = await openWebTestbed('sqlite')
  try {
    const { status, body } = await bed.ask('GET', PATH)
    assert.equal([status, body.code], [404, 'not_found'])
  } finally {
    await bed.close()
  }
})

test('the contact is an https or mailto address', () => {
  for (const good of ['https://example.pk/security', 'mailto:security@example.pk'])
    assert.is(readConfig({ SECURITY_CONTACT: good }).SECURITY_CONTACT, good)
  for (const bad of [
    'security@example.pk',
    'http://example.pk',
    'https://',
    'mailto:',
    'mailto:a@b.pk\nContact: x',
  ])
    assert.throws(
      () => readConfig({ SECURITY_CONTACT: bad }),
      /^setting SECURITY_CONTACT: must be an https/,
      bad,
    )
})

test.run()
