// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { matchingStep, otpauthUrl, stepAt, toBase32, totpCode } from './totp.ts'

const SECRET = Buffer.from('12345678901234567890')

test("makes the codes of RFC 6238's test vectors", () => {
  for (const [seconds, code] of [
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ] as const) {
    assert.is(totpCode(SECRET, stepAt(seconds * 1000), 8), code)
    assert.is(totpCode(SECRET, stepAt(seconds * 1000)), code.slice(2))
  }
})

test('accepts the codes of one step before and after, and says which step it is', () => {
  const now = 1_234_567_890_000
  const step = stepAt(now)
  for (let away = -3; away <= 3; away += 1) {
    const code = totpCode(SECRET, step + away)
    assert.is(matchingStep(SECRET, code, now), Math.abs(away) <= 1 ? step + away : null, String(away))
  }
  for (const wrong of ['', '00592', '89005924', 'abcdef', '٠٠٥٩٢٤', '005924 ']) {
    assert.is(matchingStep(SECRET, wrong, now), null, wrong)
  }
})

test("writes base32 as RFC 4648's vectors, without padding", () => {
  for (const [text, encoded] of [
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ] as const) {
    assert.is(toBase32(Buffer.from(text)), encoded)
  }
})

test('escapes what stands in the address for authenticator apps', () => {
  const url = new URL(otpauthUrl('market.example.pk', 'a+b&c@example.pk', SECRET))
  assert.is(url.protocol, 'otpauth:')
  assert.is(decodeURIComponent(url.pathname), '/market.example.pk:a+b&c@example.pk')
  assert.is(url.searchParams.get('secret'), 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
  assert.is(url.searchParams.get('issuer'), 'market.example.pk')
})

test.run()
