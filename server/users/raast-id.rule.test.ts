import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { checkRaastId } from './raast-id.rule.ts'

test('takes a mobile number in every form that people use, and answers one form', () => {
  for (const text of ['03001234567', '0300 1234567', '0300-1234567', '+923001234567', '+92 300 123 4567']) {
    assert.equal(checkRaastId(text), { ok: true, raastId: '03001234567' }, text)
  }
  for (const text of ['923001234567', '0092 300 1234567', '3001234567', ' 03001234567 ']) {
    assert.equal(checkRaastId(text), { ok: true, raastId: '03001234567' }, text)
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
