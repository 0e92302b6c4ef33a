import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { checkEndpointUrl } from './endpoint-url.ts'

const accepted = (text: string, allowLoopback = false) => checkEndpointUrl(text, { allowLoopback }).ok

test('public https addresses are accepted, with port, path and query', () => {
  for (const url of [
    'https://shop.example.com/hooks?token=abc',
    'https://shop.example.com:8443/',
    'https://8.8.8.8/hooks',
    'https://[2606:4700::1111]/hooks',
    ' https://shop.example.com/hooks ',
    'https://دکان.پاکستان/hooks',
  ])
    assert.ok(accepted(url), url)
})

test('anything else is refused', () => {
  for (const url of [
    'http://shop.example.com/',
    'ftp://shop.example.com/',
    'shop.example.com',
    'https://user:password@shop.example.com/',
    'https://shop.example.com/#part',
    'https://shop.example.com/a b',
    'https://shop.example.com\r\nX-Header: 1/',
    ...'https://intranet/ https://printer.local/ https://db.internal./ https://localhost/'.split(' '),
    ...'https://127.0.0.1/ https://2130706433/ https://0x7f.1/ https://[::1]/'.split(' '),
    ...'https://[::ffff:127.0.0.1]/ https://10.0.0.8/ https://192.168.1.1/'.split(' '),
    ...'https://169.254.169.254/latest/meta-data https://[fe80::1]/ https://[64:ff9b::a00:1]/'.split(' '),
    `https://shop.example.com/${'a'.repeat(2048)}`,
  ])
    assert.not.ok(accepted(url), url)
})

test('ports of other services are refused, also on this machine', () => {
  for (const port of [0, 22, 25, 53, 110, 143, 445, 587, 3306, 5432, 6379, 6667, 9200, 11211, 27017]) {
    assert.not.ok(accepted(`https://shop.example.com:${port}/`), String(port))
    assert.not.ok(accepted(`http://127.0.0.1:${port}/`, true), String(port))
  }
})

test('this machine is accepted outside production only', () => {
  for (const url of ['http://127.0.0.1:8080/', 'https://localhost/', 'http://[::1]:3000/hooks']) {
    assert.ok(accepted(url, true), url)
    assert.not.ok(accepted(url), url)
  }
  assert.not.ok(accepted('http://shop.example.com/', true))
  assert.not.ok(accepted('https://10.0.0.8/', true))
})

test.run()
