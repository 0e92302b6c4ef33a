import { readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { formatMoney } from '../../shared/money.ts'
import { marketSuites } from './testkit/market-suites.ts'
import {
  closeOpenCycle,
  cycleOf,
  eventsOf,
  type Marketplace,
  openFlagsOf,
  payoutOf,
} from './testkit/marketplace.ts'
import { proofDialects } from './testkit/proof-size.ts'
import { MINUTE } from './testkit/testbed.ts'

interface ManifestEntry {
  file: string
  title: string
  needs: 'nothing' | 'closed cycle' | 'charged cycle' | 'submitted payout' | 'paid payout'
  expect: { at_first?: string; event: string; cycle?: string; payout?: string; flagged: boolean }
}

const FIXTURES = new URL('../../fixtures/', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, FIXTURES), 'utf8')
const manifest: ManifestEntry[] = JSON.parse(read('processor.manifest.json'))

/** Brings a marketplace to where a fixture starts; answers what its placeholders stand for, and whose they are. */
async function prepare(market: Marketplace, needs: ManifestEntry['needs']) {
  const shop = await market.addShop()
  await market.order(shop, await market.addLink(shop, await market.addCreator()), 900_000)
  await market.drainUntilIdle()
  const cycleId = await closeOpenCycle(market.platform, shop)
  await market.drainUntilIdle()
  const cycle = await cycleOf(market.platform, cycleId)
  const invoice = {
    invoice_id: cycle.processor_invoice_id ?? '',
    payment_reference: 'pay_of_the_fixture',
    amount: formatMoney(cycle.amount_due),
  }
  if (needs === 'nothing' || needs === 'closed cycle') return { cycleId, payoutId: null, values: invoice }
  await market.confirmPayment(cycleId)
  await market.drainUntilIdle()
  if (needs === 'charged cycle') return { cycleId, payoutId: null, values: invoice }
  const payoutId = await market.payOut(needs === 'paid payout' ? 'confirmed' : undefined)
  const { processor_payout_id, amount } = await payoutOf(market.platform, payoutId)
  const payout = { payout_id: processor_payout_id ?? '', reference: payoutId, amount: formatMoney(amount) }
  return { cycleId: null, payoutId, values: payout }
}

function fill(text: string, values: Record<string, string>): string {
  const filled = text.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => values[name] ?? whole)
  assert.not.match(filled, /\{\{/)
  return filled
}

const SHARED = { shared: true, verify: true, dialects: proofDialects() }

for (const { it } of marketSuites('processor fixtures', SHARED)) {
  for (const { file, title, needs, expect } of manifest) {
    it(`${file}: ${title}`, async ({ market }) => {
      const { cycleId, payoutId, values } = await prepare(market, needs)
      const flagsBefore = (await openFlagsOf(market.platform)).length
      const { type, data } = JSON.parse(fill(read(`processor/${file}`), values))
      await market.processorSays(type, data)
      const state = async () => (await eventsOf(market.platform)).at(-1)?.state
      await market.drainUntilIdle()
      assert.is(await state(), expect.at_first ?? expect.event)
      do await market.after(11 * MINUTE)
      while ((await state()) === 'pending')
      assert.is(await state(), expect.event)
      if (expect.cycle) assert.is((await cycleOf(market.platform, cycleId ?? '')).state, expect.cycle)
      if (expect.payout) assert.is((await payoutOf(market.platform, payoutId ?? '')).state, expect.payout)
      const flagged = (await openFlagsOf(market.platform)).length - flagsBefore
      assert.is(flagged, expect.flagged ? 1 : 0)
    })
  }

  it.run()
}
