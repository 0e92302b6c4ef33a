// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { lineOfText, longText } from './common.ts'

for (const [name, schema] of Object.entries({ lineOfText: lineOfText(1, 20), longText: longText(1, 20) })) {
  test(`${name} refuses half of a character, which no database could give back`, () => {
    for (const broken of ['\ud83d', '\ude00', 'a \ud83d b', '\ude00\ud83d', '😀\ud83d']) {
      assert.is(schema.safeParse(broken).success, false, JSON.stringify(broken))
    }
    for (const whole of ['😀', 'کراچی', 'a 😀 b', '\ufffd']) assert.is(schema.parse(whole), whole)
  })
}

test.run()
