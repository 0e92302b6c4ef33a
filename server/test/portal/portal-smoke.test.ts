// database: none
import type { Browser } from 'playwright-core'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { hasChromium, launchChromium } from '../testkit/chromium.ts'
import { openTab } from './browsing.ts'
import { openSeededService, type SeededService } from './seeded-service.ts'

interface World {
  bed: SeededService
  browser: Browser
}

const it = suite<World>('the portal in Chromium')

if (hasChromium) {
  it.before(async (world) => {
    world.bed = await openSeededService()
    world.browser = await launchChromium()
  })
  it.after(async ({ bed, browser }) => {
    await browser.close()
    await bed.close()
  })
}
const scenario = hasChromium ? it : it.skip

scenario('shows offers to a visitor, and sales after logging in', async (world) => {
  const { page, errors, close } = await openTab(world.browser)
  const { url, seeded } = world.bed
  await page.goto(`${url}/app`)
  await page.waitForSelector('tbody tr')
  assert.is(page.url(), `${url}/app/offers`)
  assert.is(await page.locator('main a.button[href="/app/register"]').count(), 1)
  assert.is(await page.locator('tbody tr').count(), seeded.offers)
  await page.goto(`${url}/app/sales?acceptance_status=accepted`)
  await page.click('main a.button')
  await page.fill('[name=email]', seeded.accounts[0]?.email ?? '')
  await page.fill('[name=password]', seeded.password)
  await page.click('form [type=submit]')
  await page.waitForSelector('tbody .status.good')
  assert.is(page.url(), `${url}/app/sales?acceptance_status=accepted`)
  assert.is(await page.locator('tbody .status.bad').count(), 0)
  await page.click('.choices button')
  await page.waitForSelector('html[dir=rtl]')
  assert.equal(errors, [])
  await close()
})

it.run()
