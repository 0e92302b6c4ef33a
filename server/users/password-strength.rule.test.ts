// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { anyCharacter, fc } from '../test/testkit/property.ts'
import { type AccountWords, passwordWeakness } from './password-strength.rule.ts'
import { COMMON_PASSWORDS } from './passwords.ts'

const AYESHA = { email: 'ayesha.khan92@example.pk', displayName: 'Ayesha Khan Official' }

const weakness = (password: string, account: AccountWords) =>
  passwordWeakness(password, account, COMMON_PASSWORDS)

const WEAK: Record<string, string[]> = {
  'most used': 'qwertyuiop 1234567890 Password123 PASSWORD123 1q2w3e4r5t ｐａｓｓｗｏｒｄ１２３'.split(' '),
  'same few characters': [
    ...'aaaaaaaaaa abababababa k7$k7$k7$k7$ aaaaaaaaab 1199119911 😀😀😀😀😀😀😀😀😀😀'.split(' '),
    ...['ab'.repeat(8), 'hello'.repeat(3), 'xyz xyz xyz xyz '],
  ],
  'sequence of neighboring':
    'abcdefghij jihgfedcba xyzabcdefg lkjhgfdsapoiu 23456789012 abcdef123456 qwertasdfgzx aabbccddeeff'.split(
      ' ',
    ),
  'e-mail or display name':
    'ayesha.khan92@example.pk Ayesha.Khan92 ayeshakhan1992 AyeshaKhanOfficial! 1ayesha-khan-official'.split(
      ' ',
    ),
  'name of this service': 'affiliate2026 AffiliateAffiliate affiliate-marketplace marketplace1'.split(' '),
}

for (const [reason, passwords] of Object.entries(WEAK)) {
  test(`a password is refused: ${reason}`, () => {
    for (const password of passwords) assert.match(String(weakness(password, AYESHA)), reason, password)
  })
}

test('phrases and random texts are accepted', () => {
  for (const password of [
    'a long passphrase',
    'correct horse battery staple',
    'mango kulfi in july',
    'ayesha likes mangoes',
    'affiliate of the month',
    'میرا پاس ورڈ لمبا ہے',
    '8f3k-29xq-m1vz',
    'Tr0ub4dor&3',
  ]) {
    assert.is(weakness(password, AYESHA), null, password)
  }
  const withoutLetters = { email: '12345@1.pk', displayName: '!!!' }
  assert.is(weakness('8f3k-29xq-m1vz', withoutLetters), null)
})

test('the list has what is long enough to be asked for, in lower case', () => {
  assert.ok(COMMON_PASSWORDS.size > 1000)
  for (const password of COMMON_PASSWORDS) {
    assert.ok(password.length >= 10 && password === password.toLowerCase(), password)
  }
})

test('random passwords of twelve letters and digits are accepted, and every text gets a verdict', () => {
  const letters = [...'abcdefghijkmnpqrstuvwxyz23456789ABCDEFGHJKLMNPQRSTUVWXYZ']
  const random = fc.array(fc.constantFrom(...letters), { minLength: 16, maxLength: 16 })
  let refused = 0
  fc.assert(
    fc.property(random, (characters) => {
      if (weakness(characters.join(''), AYESHA) !== null) refused += 1
    }),
    { numRuns: 2000 },
  )
  assert.ok(refused < 20, `${refused} of 2000`)
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 256 }), fc.string(), (password, word) => {
      const verdict = weakness(password, { email: word, displayName: word })
      assert.ok(verdict === null || verdict.length > 10)
    }),
    { numRuns: 500 },
  )
})

test.run()
