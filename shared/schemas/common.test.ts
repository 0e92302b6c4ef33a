// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { applyInput } from './applications.ts'
import { lineOfText, longText, wholeText } from './common.ts'
import { createOfferInput } from './offers.ts'
import { loginInput, registerInput } from './users.ts'

for (const [name, schema] of Object.entries({ lineOfText: lineOfText(1, 20), longText: longText(1, 20) })) {
  test(`${name} refuses half of a character, which no database could give back`, () => {
    for (const broken of ['\ud83d', '\ude00', 'a \ud83d b', '\ude00\ud83d', '😀\ud83d']) {
      assert.is(schema.safeParse(broken).success, false, JSON.stringify(broken))
    }
    for (const whole of ['😀', 'کراچی', 'a 😀 b', '\ufffd']) assert.is(schema.parse(whole), whole)
  })
}

for (const [name, schema] of Object.entries({ lineOfText: lineOfText(0, 40), longText: longText(0, 40) })) {
  test(`${name} refuses what cannot be seen, and what turns the text around it`, () => {
    const unseen = '\u200b,\u00ad,\u2060,\u200c\u200d, \u200f ,\ufe0f,\u3164,\u2800,\u{e0041}'
    for (const text of unseen.split(',')) {
      assert.is(schema.safeParse(text).error?.issues[0]?.message, 'must have characters that can be seen')
    }
    for (const control of '\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069') {
      assert.match(schema.safeParse(`Sana${control}moc.live`).error?.issues[0]?.message ?? '', /direction/)
    }
    const seen = ',می\u200cخواہم,ثنا\u200f Khan\u200e,क्\u200dष,👨\u200d👩\u200d👧,❤\ufe0f,٭,—'
    for (const text of seen.split(',')) assert.is(schema.parse(text), text)
  })
}

test('wholeText refuses half of a character and a zero character, and keeps all else as it is', () => {
  for (const broken of ['\ud83d', 'a\0b', '\0'])
    assert.is(wholeText().safeParse(broken).success, false, JSON.stringify(broken))
  for (const whole of ['', ' 😀\t\n ', '\x7f']) assert.is(wholeText().parse(whole), whole)
})

test('no text of an input is without such a check', () => {
  const login = { email: 'a@example.pk', password: 'a long passphrase' }
  const terms = {
    ...{ title: 'Lamp', description: 'Brass', category: 'Home', niche: 'Lamps', commission_rate: 10 },
    ...{ product_url: 'https://shop.pk/lamp', image_url: 'https://shop.pk/lamp.jpg' },
  }
  const id = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'
  for (const [schema, input] of [
    [registerInput, { ...login, role: 'creator', display_name: 'A' }],
    [loginInput, login],
    [createOfferInput, terms],
    [applyInput, { id, message: 'Hello', promotion_url: 'https://a.pk' }],
  ] as const) {
    assert.ok(schema.safeParse(input).success)
    for (const [name, value] of Object.entries(input)) {
      if (typeof value !== 'string') continue
      for (const bad of ['\0', '\ud83d']) {
        const changed = { ...input, [name]: value + bad + value }
        assert.is(schema.safeParse(changed).success, false, `${name} ${JSON.stringify(bad)}`)
      }
    }
  }
})

test.run()
