// database: none
// proof only
import type { Browser, Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { addPracticeShop } from '../../../cli/practice/practice-shop.ts'
import { browserSuite } from '../testkit/browsers.ts'
import { verify } from '../testkit/marketplace.ts'
import { openServiceBed, type ServiceBed } from '../testkit/service-bed.ts'
import { openTab } from './browsing.ts'

interface World {
  bed: ServiceBed
  browser: Browser
}

const SHOP = 'ravi-ajrak.myshopify.com'
const PASSWORD = 'seven quiet rivers'

const it = browserSuite<World>('from nothing to a paid payout by clicking')

it.before(async (world) => {
  world.bed = await openServiceBed(
    'sqlite',
    {},
    { extend: (server, app) => addPracticeShop(server, app, { roundMs: 1000 }) },
  )
})
it.after(({ bed }) => bed?.close())

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).first().click()
const follow = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).first().click()
const goTo = (page: Page, screen: string) =>
  page.getByRole('navigation').getByRole('link', { name: screen, exact: true }).click()

/** Fills the form by the names of its fields, and sends it. */
async function fill(page: Page, fields: Record<string, string>, submit: string) {
  const form = page.locator('form', { has: page.locator(`[name=${Object.keys(fields)[0]}]`) }).last()
  for (const [name, value] of Object.entries(fields)) {
    const field = form.locator(`[name=${name}]`)
    if ((await field.evaluate((element) => element.tagName)) === 'SELECT') await field.selectOption(value)
    else await field.fill(value)
  }
  await form.getByRole('button', { name: submit, exact: true }).click()
}

async function register(world: World, role: string, name: string) {
  const { page, errors } = await openTab(world.browser)
  await page.goto(`${world.bed.url}/app`)
  await follow(page, 'Register')
  const account = { role, display_name: name, email: `${role}@example.pk`, password: PASSWORD }
  await fill(page, account, 'Register')
  await page.getByText(name).first().waitFor()
  return { page, errors }
}

it('merchant, creator, buyer', async (world) => {
  const { url } = world.bed
  const merchant = await register(world, 'merchant', 'Ravi Ajrak')
  await goTo(merchant.page, 'Stores')
  await follow(merchant.page, 'Connect a store')
  await press(merchant.page, 'Done, next')
  await fill(merchant.page, { shop_domain: SHOP, webhook_secret: 'secret-of-the-shop' }, 'Connect')
  await merchant.page.getByText('Nothing signed has arrived.').waitFor()

  // The first signed order reaches the open page.
  const buyer = await openTab(world.browser)
  await buyer.page.goto(`${url}/practice`)
  await follow(buyer.page, SHOP)
  await press(buyer.page, 'Buy and pay now')
  await buyer.page.getByText('sale rejected: no_tracking_reference').waitFor()
  await merchant.page.getByText('Signed orders arrive.').waitFor()

  await goTo(merchant.page, 'My offers')
  await follow(merchant.page, 'New offer')
  const product_url = `https://${SHOP}/products/shawl`
  const product = { title: 'Ajrak shawl', product_url, commission_rate: '12.5' }
  await fill(merchant.page, { ...product, category: 'Fashion', niche: 'Ajrak' }, 'Save the draft')
  await press(merchant.page, 'Go live')
  await merchant.page.getByRole('button', { name: 'Pause' }).waitFor()

  const creator = await register(world, 'creator', 'Sana Mirza')
  await goTo(creator.page, 'Offers')
  await follow(creator.page, 'Ajrak shawl')
  await fill(creator.page, { message: 'I show ajrak every Friday.' }, 'Apply')
  await creator.page.getByText('You have applied.').waitFor()
  await goTo(creator.page, 'Payouts')
  await press(creator.page, 'Add a bank account')
  const account = { iban: 'PK36 SCBL 0000 0011 2345 6702', account_title: 'SANA MIRZA' }
  await fill(creator.page, account, 'Add a bank account')
  await creator.page.getByText('6702').waitFor()

  await goTo(merchant.page, 'Applications')
  await press(merchant.page, 'Approve')
  await fill(merchant.page, { coupon_code: 'SANA10' }, 'Approve')
  await merchant.page.getByText('SANA10').waitFor()

  await goTo(creator.page, 'Links')
  await press(creator.page, 'Share')
  const link = await creator.page.getByLabel('Your link', { exact: true }).inputValue()
  await press(creator.page, 'Close')
  // From here on both pages change without a reload.
  await goTo(creator.page, 'Sales')
  await creator.page.getByLabel('From').fill('2020-01-01')
  await creator.page.getByRole('link', { name: 'Remove all filters' }).waitFor()
  await goTo(merchant.page, 'Billing')

  await buyer.page.goto(link)
  await buyer.page.getByText("You came by Sana Mirza's link.").waitFor()
  await press(buyer.page, 'Buy and pay now')
  await buyer.page.getByText('sale accepted, commission Rs 1,000.00').waitFor()

  await creator.page.locator('tbody .status.good').waitFor()
  await goTo(creator.page, 'Payouts')
  await merchant.page.locator('tbody .status.good').waitFor()
  await creator.page.locator('tbody .status.good').waitFor()
  assert.match(await creator.page.locator('tbody tr').first().innerText(), /Rs 1,000\.00/)
  await verify(world.bed.service.app.platform)
  assert.equal([...merchant.errors, ...creator.errors, ...buyer.errors], [])
})

it.run()
