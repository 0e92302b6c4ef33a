// database: none
import * as assert from 'uvu/assert'
import { BROWSERS } from '../testkit/browsers.ts'
import { openTab, portalSuite } from './browsing.ts'

// The other proofs of the portal play in Firefox too.
const it = portalSuite('the portal', 'light', BROWSERS.slice(0, 1))

it('shows offers to a visitor, and sales after logging in', async (world) => {
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
