import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { checkIban, checkRaastId, last4Of } from './bank-accounts.rule.ts'

const VALID = 'PK36SCBL0000001123456702'
const messageOf = (text: string) => {
  const check = checkIban(text)
  return check.ok ? `allowed: ${check.text}` : check.message
}

/** As banks' apps, chat programs, e-mails and PDF statements write the registry's example; the last property adds spaces and marks. */
const PASTED_IBANS = [
  VALID,
  ' pk36scbl0000001123456702\n',
  '\u2066IBAN: PK36 SCBL 0000 0011 2345 6702\u2069',
  'IBAN: PK36SCBL0000001123456702',
  'IBAN:\tPK36 SCBL 0000 0011 2345 6702.',
  'IBAN PK36 SCBL 0000 0011 2345 6702',
  'iban：pk36scbl0000001123456702',
  'Account No. (IBAN): PK36SCBL0000001123456702',
  'آئی بی اے این: PK36SCBL0000001123456702',
  ...'*PK36SCBL0000001123456702* “PK36SCBL0000001123456702” (PK36SCBL0000001123456702)'.split(' '),
  'PK۳۶SCBL۰۰۰۰۰۰۱۱۲۳۴۵۶۷۰۲',
  'PK٣٦ SCBL ٠٠٠٠ ٠٠١١ ٢٣٤٥ ٦٧٠٢',
  'PK36SCBL000000112345670٢،',
]

test('an IBAN is taken as people paste it', () => {
  for (const text of PASTED_IBANS) assert.equal(checkIban(text), { ok: true, text: VALID }, text)
})

test('what is no Pakistani IBAN is said to be none', () => {
  const lengths = ['', 'PK', VALID.slice(0, -1), `${VALID}0`]
  const foreign = ['GB29NWBK60161331926819', 'AE070331234567890123456']
  const letters = ['PK36SCB10000001123456702', 'PKA6SCBL0000001123456702', 'PK36ſCBL0000001123456702']
  const signs = ['PK36\u212aCBL0000001123456702', 'PK36SCBL000000112345670२', 'PK36+SCBL0000001123456702']
  for (const text of [
    ...[...lengths, ...foreign, ...letters, ...signs],
    'PK36SCBL0000001123456702\0',
    `${VALID}: ${VALID}`,
    `${VALID} ${VALID}`,
    'IBAN:',
    `IBAN: IBAN: ${VALID}`,
    `${'x'.repeat(50)}: ${VALID}`,
  ]) {
    assert.match(messageOf(text), /must be a Pakistani IBAN/, text)
  }
})

test('wrong check digits have a reason of their own', () => {
  for (const text of 'PK37SCBL0000001123456702 PK36SCBL0000001123456703 PK36SCBL0000001123456720'.split(' '))
    assert.match(messageOf(text), /check digits/, text)
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

/** As contacts, chat programs, visiting cards and banks' apps write it. */
const PASTED_NUMBERS = [
  ...'03001234567 +923001234567 923001234567 3001234567 0300/1234567 tel:+923001234567 *0300-1234567*'.split(
    ' ',
  ),
  '0092 300 1234567',
  '(0300) 1234567',
  '+92 (0)300 1234567',
  '+92-(0)-300-123-4567',
  'tel:+92-300-1234567',
  'Mobile No: 0300 1234567',
  'Raast ID: 03001234567',
  '۰۳۰۰۱۲۳۴۵۶۷',
  '٠٣٠٠ ١٢٣٤٥٦٧',
  '+۹۲ ۳۰۰ ۱۲۳۴۵۶۷',
]

test('a mobile number is taken in every form that people paste, and answered in one', () => {
  for (const text of PASTED_NUMBERS) assert.equal(checkRaastId(text), { ok: true, text: '03001234567' }, text)
})

test('refuses what is no Pakistani mobile number', () => {
  const wrong = ['', '0300123456', '030012345678', '04212345678', '+913001234567', '03OO1234567']
  const odd = ['a@example.pk', '+03001234567', '3520112345671', '++923001234567', '+92 00300 1234567']
  for (const text of [
    ...wrong,
    ...odd,
    '0300 1234567 or 0301 1234567',
    '०३००१२३४५६७',
    'tel:tel:03001234567',
  ]) {
    assert.is(checkRaastId(text).ok, false, text)
  }
})

test('property: marks, spaces and hyphens anywhere change nothing', () => {
  const marks = [...'\u200e\u200b\u200d\u202a\u202c\u2069\ufeff\u00ad']
  const noise = fc.constantFrom(...marks, ...' \u00a0\u202f\u2007-\u2011\u2013\u2014\u2212.', '')
  fc.assert(
    fc.property(fc.array(noise, { minLength: 25, maxLength: 25 }), (added) => {
      const noisy = (text: string) => [...text].map((character, at) => `${added[at]}${character}`).join('')
      assert.equal(checkIban(noisy(VALID)), { ok: true, text: VALID })
      for (const number of ['+923001234567', '03001234567'])
        assert.equal(checkRaastId(noisy(number)), { ok: true, text: '03001234567' })
    }),
    { numRuns: 500 },
  )
})

test.run()
