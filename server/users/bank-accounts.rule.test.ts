import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { checkIban, checkRaastId, last4Of } from './bank-accounts.rule.ts'

const VALID = 'PK36SCBL0000001123456702'
const messageOf = (text: string) => {
  const check = checkIban(text)
  return check.ok ? `allowed: ${check.text}` : check.message
}

test('the registry example is valid as written, spaced and in small letters', () => {
  for (const text of [
    VALID,
    'PK36 SCBL 0000 0011 2345 6702',
    ' pk36scbl0000001123456702\n',
    'PK36\u00a0SCBL 0000001123456702',
  ]) {
    assert.equal(checkIban(text), { ok: true, text: VALID })
  }
})

test('what is no Pakistani IBAN is said to be none', () => {
  for (const text of [
    '',
    'PK',
    VALID.slice(0, -1),
    `${VALID}0`,
    'GB29NWBK60161331926819',
    'AE070331234567890123456',
    'PK36SCB10000001123456702',
    'PK36-SCBL-0000-0011-2345-6702',
    'PKA6SCBL0000001123456702',
    'PK36ſCBL0000001123456702',
    'PK36SCBL000000112345670٢',
  ]) {
    assert.match(messageOf(text), /must be a Pakistani IBAN/, text)
  }
})

test('wrong check digits have a reason of their own', () => {
  assert.match(messageOf('PK37SCBL0000001123456702'), /check digits/)
  assert.match(messageOf('PK36SCBL0000001123456703'), /check digits/)
  assert.match(messageOf('PK36SCBL0000001123456720'), /check digits/)
})

test('only the last four characters are shown', () => {
  assert.is(last4Of(VALID), '6702')
})

/** An oracle by another road: the whole number at once, instead of digit by digit. */
function checkDigitsOf(account: string): string {
  const digits = [...`${account}PK00`].map((character) => Number.parseInt(character, 36)).join('')
  return String(98n - (BigInt(digits) % 97n)).padStart(2, '0')
}

const letter = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZ')
const letterOrDigit = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789')
const account = fc
  .tuple(
    fc.string({ unit: letter, minLength: 4, maxLength: 4 }),
    fc.string({ unit: letterOrDigit, minLength: 16, maxLength: 16 }),
  )
  .map((parts) => parts.join(''))

test('property: every account is valid with exactly one pair of check digits', () => {
  fc.assert(
    fc.property(account, (one) => {
      const right = checkDigitsOf(one)
      for (let pair = 0; pair < 100; pair += 1) {
        const digits = String(pair).padStart(2, '0')
        assert.is(checkIban(`PK${digits}${one}`).ok, digits === right)
      }
    }),
    { numRuns: 100 },
  )
})

test('property: one digit typed for a digit, or one letter for a letter, never passes', () => {
  const isLetter = (character = '') => /[A-Z]/.test(character)
  fc.assert(
    fc.property(account, fc.nat(19), letterOrDigit, (one, position, typed) => {
      // A letter for a digit can pass: it makes the divided number one place longer.
      fc.pre(one[position] !== typed && isLetter(one[position]) === isLetter(typed))
      const mistyped = one.slice(0, position) + typed + one.slice(position + 1)
      assert.is(checkIban(`PK${checkDigitsOf(one)}${mistyped}`).ok, false)
    }),
    { numRuns: 500 },
  )
})

test('takes a mobile number in every form that people use, and answers one form', () => {
  for (const text of ['03001234567', '0300 1234567', '0300-1234567', '+923001234567', '+92 300 123 4567']) {
    assert.equal(checkRaastId(text), { ok: true, text: '03001234567' }, text)
  }
  for (const text of ['923001234567', '0092 300 1234567', '3001234567', ' 03001234567 ']) {
    assert.equal(checkRaastId(text), { ok: true, text: '03001234567' }, text)
  }
})

test('refuses what is no Pakistani mobile number', () => {
  const wrong = [
    '',
    '0300123456',
    '030012345678',
    '04212345678',
    '+913001234567',
    '03OO1234567',
    '٠٣٠٠١٢٣٤٥٦٧',
  ]
  for (const text of [...wrong, 'a@example.pk', '+03001234567', '0300.1234567', '3520112345671']) {
    assert.is(checkRaastId(text).ok, false, text)
  }
})

test.run()
