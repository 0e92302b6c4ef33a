import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isVerifiedHost, productHostOf } from './product-host.rule.ts'

const SHOP = { shopDomains: ['kurta.myshopify.com', 'www.kurta.pk'], shown: ['checkout.example.com'] }

const verified = (host: string, shop: typeof SHOP = SHOP) => isVerifiedHost({ host, ...shop })

test('a host is verified if it is the shop’s domain, below it, or shown by orders, with or without www', () => {
  for (const host of [
    'kurta.myshopify.com',
    'www.kurta.myshopify.com',
    'kurta.pk',
    'www.kurta.pk',
    'de.kurta.pk',
    'checkout.example.com',
    'www.checkout.example.com',
  ]) {
    assert.ok(verified(host), host)
  }
})

test('a host is not verified by sharing an ending, a beginning or a parent with a shop’s domain', () => {
  for (const host of [
    'myshopify.com',
    'other.myshopify.com',
    'evil-kurta.pk',
    'kurta.pk.evil.com',
    'x.checkout.example.com',
    'example.com',
    'com',
  ]) {
    assert.not.ok(verified(host), host)
  }
})

test('a merchant without stores and orders has no verified host', () => {
  assert.not.ok(verified('kurta.pk', { shopDomains: [], shown: [] }))
})

test('the host of a product address is compared without port, path, user name and letter case', () => {
  assert.is(productHostOf('https://Kurta.PK:8443/products/lawn?variant=1#top'), 'kurta.pk')
  assert.is(productHostOf('https://kurta.pk@evil.com/products/lawn'), 'evil.com')
  assert.is(productHostOf('https://xn--mgbb0a3b.pk/'), 'xn--mgbb0a3b.pk')
})

test.run()
