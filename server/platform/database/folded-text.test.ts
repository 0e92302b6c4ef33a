// database: none

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { anyCharacter, fc } from '../../test/testkit/property.ts'
import { foldedKey, foldedWords } from './folded-text.ts'

test('a key knows neither case nor spelling', () => {
  const same = [
    ['Fashion', 'FASHION', ' fashion '],
    ['Home  Decor', 'home decor', 'home\u00a0decor'],
    ['Café', 'CAFE', 'cafe\u0301'],
    ["Men's", 'men’s', 'MENS'],
    ['İstanbul', 'istanbul'],
    ['کپڑے', 'كپڑے', 'کَپڑے', 'کپـڑے'],
    ['لڑکی', 'لڑكي'],
    ['٣ پیس', '۳ پیس', '3 پیس'],
    ['جمعۃ', 'جمعة', 'جمعہ', 'جمعه', 'جمعھ', 'جمعە', 'جمعۂ', 'جمعۀ', 'ﺟﻤﻌﺔ'],
    ['ھاتھ', 'ہاتھ', 'هاته', 'ہاتہ'],
    ['یکی', 'يكي', 'ىڪى', 'ېکؠ', 'ێكۍ', 'یکئ'],
    ['ٱلکرم', 'الكرم', 'الڪرم'],
  ]
  for (const spellings of same) {
    assert.is(new Set(spellings.map(foldedKey)).size, 1, spellings.join(' / '))
  }
  assert.is.not(foldedKey('Shoes & bags'), foldedKey('Shoes bags'))
  const others = ['کپڑے', 'کپڑی', 'کپڑا', 'گپڑا', 'کپرا', 'کپڑو', 'چپڑا', 'حپڑا']
  assert.is(new Set(others.map(foldedKey)).size, others.length)
  assert.is(foldedKey('ﷺ'.repeat(60)).length, 120)
})

test('words are runs of letters and digits, flags and emoji', () => {
  const words: [string, string[]][] = [
    ['Lawn kurta, lawn!', ['lawn', 'kurta']],
    ['100% cotton 3-piece', ['100', 'cotton', '3', 'piece']],
    ['"men\'s" OR -x NEAR(a*) a:b', ['mens', 'or', 'x', 'near', 'a', 'b']],
    ['لان کُرتا', ['لان', 'کرتا']],
    ['🔥🔥Sale 🇵🇰 ❤️ 👍🏽', ['🔥', 'sale', '🇵🇰', '❤', '👍']],
    ['हिन्दी', ['हिन्दी']],
    ['_ \\ % ---', []],
    ['\ud800 x', ['x']],
    ['a'.repeat(90), ['a'.repeat(40)]],
  ]
  for (const [text, expected] of words) assert.equal(foldedWords(text), expected, text)
})

test('property: folding again changes nothing, and no word holds what a query language could read', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 60 }), (text) => {
      const words = foldedWords(text)
      assert.equal(foldedWords(words.join(' ')), words)
      assert.is(foldedKey(foldedKey(text)), foldedKey(text))
      for (const word of words) assert.not.match(word, /[\s"'\\:*^(){}&|!<>+-]|\0/)
    }),
    { numRuns: 2000 },
  )
})

test.run()
