// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { exampleHostIn, placeholderIn } from './placeholder.rule.ts'

const PLACEHOLDERS: Record<string, string> = {
  replace: 'replace',
  ' REPLACE ': 'REPLACE',
  'replace me': 'replace me',
  'postgres://affiliate:replace@127.0.0.1:5432/affiliate': 'replace',
  'https://replace.shop.pk': 'replace',
  's3://replace-seals/production': 'replace',
  changeme: 'changeme',
  'change-me': 'change-me',
  'https://your-domain.pk': 'your-domain',
  whsec_your_secret: 'your_secret',
  '<your key>': '<your key>',
  xxxx: 'xxxx',
  '...': '...',
  TODO: 'TODO',
  'Shop <no-reply@replace.pk>': 'replace',
}

for (const [text, word] of Object.entries(PLACEHOLDERS)) {
  test(`"${text}" holds a placeholder`, () => assert.is(placeholderIn(text), word))
}

const VALUES = [
  'https://partners.chenab.pk',
  'postgres://affiliate:s3cret-Passw0rd@db/affiliate',
  'irreplaceable',
  'secret',
  'https://your-style.pk',
  'Pay to Bank X, replace nothing in the reference.',
  'Shop <no-reply@shop.pk>',
  Buffer.alloc(32, 9).toString('base64'),
  'sk_1',
]

for (const text of VALUES) {
  test(`"${text}" holds none`, () => assert.is(placeholderIn(text), null))
}

test('a host of documentation is one that can be no one’s', () => {
  const hosts = {
    'https://partners.example.pk/x': 'partners.example.pk',
    'smtp://user:a@MAIL.Example.com:587': 'MAIL.Example.com',
    'Shop <no-reply@shop.example>': 'shop.example',
    'https://shop.pk,https://app.invalid': 'app.invalid',
  }
  for (const [text, host] of Object.entries(hosts)) assert.is(exampleHostIn(text), host, text)
  for (const text of ['https://examples.pk', 'sqlite:/srv/example/a.db', 'https://shop.pk', 'example']) {
    assert.is(exampleHostIn(text), null, text)
  }
})

test.run()
