import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { anyCharacter, fc } from '../test/testkit/property.ts'
import {
  checkProductUrl,
  isVerifiedHost,
  MAX_PRODUCT_URL_LENGTH,
  parameterNames,
  productHostOf,
  withoutTrackingReference,
  withTrackingReference,
} from './product-url.rule.ts'

const words = (text: string) => text.trim().split(/\s+/)
const messageOf = (text: string) => {
  const check = checkProductUrl(text)
  return check.ok ? `allowed: ${check.url}` : check.message
}

test('ordinary shop addresses are allowed as they stand', () => {
  for (const url of words(`
    https://khaadi.com.pk/products/lawn-3pc?variant=42&size=%D9%85#reviews https://shop.example.com/
    https://www.example.pk/a/b?x=1&x=2&&y https://xn--mgbai9azgqp6j.xn--mgbai9azgqp6j/`))
    assert.equal(checkProductUrl(url), { ok: true, url })
})

test('an address is answered in ASCII, as a Location header needs it', () => {
  const arabic = 'https://shop.example.com/%D9%84%D8%A7%D9%86?%D8%B1%D9%86%DA%AF=1'
  assert.equal(checkProductUrl('  HTTPS://Shop.Example.COM:443/لان?رنگ=1 '), { ok: true, url: arabic })
  const umlaut = 'https://xn--bcher-kva.example.com/'
  assert.equal(checkProductUrl('https://bücher.example.com'), { ok: true, url: umlaut })
})

test('only https, written in full', () => {
  const texts = words(`
    shop.pk/x http://shop.pk/ javascript:alert(1)//https://shop.pk data:text/html,x https:shop.pk https:/shop.pk
    https:///shop.pk //shop.pk/ ftp://shop.pk/`)
  for (const text of ['', ...texts]) assert.match(messageOf(text), /begin with https/, text)
})

test('no address literal in any notation', () => {
  for (const host of words(`
    127.0.0.1 8.8.8.8 2130706433 0x7f000001 0x7f.1 0177.0.0.1 127.1 127.0.0.1. １２７.0.0.1 %31%32%37.0.0.1
    [::1] [2001:db8::1] [::ffff:127.0.0.1] 169.254.169.254`))
    assert.match(messageOf(`https://${host}/`), /public host name/, host)
})

test('no single label, reserved name, trailing dot or odd label', () => {
  const names = words(`
    localhost LOCALHOST a.localhost intranet printer.local db.internal shop.test shop.invalid shop.example x.onion
    router.home.arpa shop.pk. a_b.pk -a.pk a-.pk a!b.pk shop.p1`)
  for (const host of [...names, `${'a'.repeat(64)}.pk`, `${'a.'.repeat(130)}pk`])
    assert.match(messageOf(`https://${host}/`), /public host name/, host)
})

test('a name that only ends like a reserved one is public', () => {
  assert.ok(checkProductUrl('https://notlocalhost.com/').ok)
  assert.ok(checkProductUrl('https://localhost.pk/').ok)
  assert.ok(checkProductUrl('https://127.0.0.1.pk/').ok)
})

test('no credentials, no port, no unsafe characters, no broken host', () => {
  const rows: [RegExp, string[]][] = [
    [/user name/, words('https://user@shop.pk/ https://:secret@shop.pk/ https://shop.pk@evil.pk/')],
    [/port/, words('https://shop.pk:8443/ https://shop.pk:80/')],
    [/must not contain/, words('https://shop.pk\\@evil.pk/')],
    [/must not contain/, ['https://sh\top.pk/', 'https://shop.pk/a b', 'https://shop.pk/\r\nX:1']],
    [
      /not a valid address/,
      words('https://%/ https://sh<op.pk/ https://shop.pk:99999/ https://1.2.3.400/ https://[::1/'),
    ],
  ]
  for (const [message, texts] of rows) for (const text of texts) assert.match(messageOf(text), message)
})

test('the length counts before and after percent-encoding', () => {
  const base = 'https://shop.pk/'
  const full = base + 'a'.repeat(MAX_PRODUCT_URL_LENGTH - base.length)
  assert.ok(checkProductUrl(full).ok)
  assert.match(messageOf(`${full}a`), /at most 2048 characters$/)
  assert.match(messageOf(base + 'ل'.repeat(400)), /once percent-encoded/)
})

test('the reference joins a query, a fragment or neither', () => {
  const add = (url: string) => withTrackingReference(url, 'aff_ref', 'r1')
  assert.is(add('https://a.pk/'), 'https://a.pk/?aff_ref=r1')
  assert.is(add('https://a.pk/?'), 'https://a.pk/?aff_ref=r1')
  assert.is(add('https://a.pk/x#top'), 'https://a.pk/x?aff_ref=r1#top')
  assert.is(add('https://a.pk/x?a=1#top?b=2'), 'https://a.pk/x?a=1&aff_ref=r1#top?b=2')
  assert.is(add('https://a.pk/x#'), 'https://a.pk/x?aff_ref=r1#')
})

test('everything else stays byte for byte', () => {
  const query = 'q=a+b%20c&&x&y=&z=%zz&k=?&arr[]=1&arr%5B%5D=2&%D9%84=ü'
  assert.is(
    withTrackingReference(`https://a.pk/%7e/a?${query}#/r?aff_ref=old`, 'aff_ref', 'r1'),
    `https://a.pk/%7e/a?${query}&aff_ref=r1#/r?aff_ref=old`,
  )
})

test('a parameter of the same name is replaced however it is written, others of like names stay', () => {
  assert.is(
    withTrackingReference(
      'https://a.pk/?aff_ref=x&a=1&aff%5Fref=y&aff_ref&AFF_REF=z&aff_ref2=w',
      'aff_ref',
      'r1',
    ),
    'https://a.pk/?a=1&AFF_REF=z&aff_ref2=w&aff_ref=r1',
  )
  assert.is(withTrackingReference('https://a.pk/?a+b=1&c=2', 'a b', 'r'), 'https://a.pk/?c=2&a%20b=r')
  assert.is(withTrackingReference('https://a.pk/??p=1&%3Fp=2', 'p', 'r'), 'https://a.pk/??p=1&%3Fp=2&p=r')
})

test('parameter and reference cannot break out of their place', () => {
  assert.is(withTrackingReference('https://a.pk/', 'p&q', 'a=b#c&d'), 'https://a.pk/?p%26q=a%3Db%23c%26d')
})

const piece = fc.string({ unit: fc.constantFrom(...'abp=%2+?/[]é'), maxLength: 8 })
const query = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join('&'))
const fragment = fc.option(fc.string({ unit: fc.constantFrom(...'ab#?&=%'), maxLength: 8 }))

test('property: the shop reads exactly one reference, and all else in the same bytes and order', () => {
  fc.assert(
    fc.property(query, fragment, fc.uuid({ version: 7 }), (before, after, reference) => {
      const url = `https://shop.pk/x?${before}${after === null ? '' : `#${after}`}`
      const tracked = withTrackingReference(url, 'p', reference)
      assert.equal(new URL(tracked).searchParams.getAll('p'), [reference])
      const others = [...new URL(url).searchParams].filter(([name]) => name !== 'p')
      assert.equal([...new URL(tracked).searchParams].slice(0, -1), others)
      assert.ok(tracked.endsWith(`p=${reference}${after === null ? '' : `#${after}`}`))
      assert.is(withTrackingReference(tracked, 'p', reference), tracked)
      const hadOne = new URL(url).searchParams.has('p')
      if (!hadOne && before !== '') assert.ok(tracked.startsWith(`https://shop.pk/x?${before}&p=`))
    }),
    { numRuns: 1000 },
  )
})

test('property: what is allowed parses to an https address without port and credentials, and is allowed again unchanged', () => {
  // fast-check's own addresses are made of its table of all characters, which takes a second to fill.
  const encoded = fc.string({ unit: anyCharacter, maxLength: 10 }).map(encodeURIComponent)
  const url = fc
    .tuple(
      fc.constantFrom('https', 'http'),
      fc.domain(),
      fc.array(encoded, { maxLength: 4 }),
      encoded,
      encoded,
    )
    .map(
      ([scheme, domain, path, query, fragment]) =>
        `${scheme}://${[domain, ...path].join('/')}${query && `?${query}`}${fragment && `#${fragment}`}`,
    )
  const text = fc.oneof(url, fc.string())
  fc.assert(
    fc.property(text, (given) => {
      const check = checkProductUrl(given)
      if (!check.ok) return assert.ok(check.message.length > 0)
      const url = new URL(check.url)
      assert.equal([url.protocol, url.port, url.username, url.password], ['https:', '', '', ''])
      assert.match(check.url, /^[\x21-\x7e]+$/)
      assert.equal(checkProductUrl(check.url), check)
    }),
    { numRuns: 500 },
  )
})

test('property: no IPv4 number is ever a public host name', () => {
  fc.assert(
    fc.property(fc.nat(0xffffffff), (address) => {
      const [a, b, c, d] = [24, 16, 8, 0].map((shift) => (address >>> shift) & 255)
      const [hex, octal] = [address.toString(16), address.toString(8)]
      for (const host of [address, `0x${hex}`, `0${octal}`, `${a}.${b}.${c}.${d}`])
        assert.is(checkProductUrl(`https://${host}/`).ok, false)
    }),
    { numRuns: 300 },
  )
})

const SHOP = { shopDomains: ['kurta.myshopify.com', 'www.kurta.pk'], shown: ['checkout.example.com'] }

const verified = (host: string, shop: typeof SHOP = SHOP) => isVerifiedHost({ host, ...shop })

test('a host is verified if it is the shop’s domain, below it, or shown by orders, with or without www', () => {
  for (const host of words(`
    kurta.myshopify.com www.kurta.myshopify.com kurta.pk www.kurta.pk de.kurta.pk checkout.example.com
    www.checkout.example.com`))
    assert.ok(verified(host), host)
})

test('a host is not verified by sharing an ending, a beginning or a parent with a shop’s domain', () => {
  for (const host of words(`
    myshopify.com other.myshopify.com evil-kurta.pk kurta.pk.evil.com x.checkout.example.com example.com com`))
    assert.not.ok(verified(host), host)
  assert.not.ok(verified('kurta.pk', { shopDomains: [], shown: [] }), 'without stores and orders')
})

test('the host of a product address is compared without port, path, user name and letter case', () => {
  assert.is(productHostOf('https://Kurta.PK:8443/products/lawn?variant=1#top'), 'kurta.pk')
  assert.is(productHostOf('https://kurta.pk@evil.com/products/lawn'), 'evil.com')
  assert.is(productHostOf('https://xn--mgbb0a3b.pk/'), 'xn--mgbb0a3b.pk')
})

test('a pasted reference is removed, in any encoding, and nothing else', () => {
  const rows: [given: string, left: string][] = [
    ['https://a.pk/x?aff_ref=1', 'https://a.pk/x'],
    ['https://a.pk/x?v=7&aff_ref=1&aff%5Fref=2&w#top', 'https://a.pk/x?v=7&w#top'],
    ['https://a.pk/x?aff_ref#r?aff_ref=1', 'https://a.pk/x#r?aff_ref=1'],
    ['https://a.pk/x?my_aff_ref=1&v=aff_ref=1', 'https://a.pk/x?my_aff_ref=1&v=aff_ref=1'],
    ['https://a.pk/x?#top', 'https://a.pk/x?#top'],
  ]
  for (const [given, left] of rows) assert.is(withoutTrackingReference(given, 'aff_ref'), left, given)
})

test('the names of an address are read as a shop reads them', () => {
  const names = parameterNames('https://kurta.pk/p?b=%20x&c&%61ff_ref=1&a+b=2&=3#d=4')
  assert.equal(names, ['b', 'c', 'aff_ref', 'a b', ''])
})

test.run()
