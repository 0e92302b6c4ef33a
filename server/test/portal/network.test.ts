// proof only
// database: none
import * as assert from 'uvu/assert'
import { onChromium } from '../testkit/chromium.ts'
import { eventually } from '../testkit/eventually.ts'
import { call } from '../testkit/service-bed.ts'
import { open, openTab, portalSuite } from './browsing.ts'

const it = portalSuite('the portal and its network')

it('asks no other host for the picture of an offer, and links to it', async ({ bed, browser }) => {
  const merchant = bed.seeded.accounts.find(({ role }) => role === 'merchant')
  const body = { email: merchant?.email, password: bed.seeded.password }
  const { token, user } = (await call(bed.url, 'POST', '/auth/login', { body })).body
  const { items } = (await call(bed.url, 'GET', '/offers')).body
  const offer = items.find((one: typeof items) => one.merchant.id === user.id)
  const image_url = 'https://pictures.example.com/lawn.jpg'
  await call(bed.url, 'PATCH', `/offers/${offer.id}`, { token, body: { image_url } })
  const { page, errors, close } = await openTab(browser)
  await open(page, bed.url, `/offers/${offer.id}`)
  await page.waitForSelector(`main a[href="${image_url}"][rel~=noreferrer]`)
  assert.is(await page.locator('main img').count(), 0)
  assert.equal(errors, [])
  // The policy refuses it too.
  await page.evaluate(`document.body.append(Object.assign(new Image(), { src: '${image_url}' }))`)
  assert.ok(await eventually(() => errors.some((text) => text.includes('Content Security Policy'))))
  await close()
})

onChromium(it).run()
