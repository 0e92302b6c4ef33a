// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { formatLineAmount } from '../../../shared/line-amount.ts'
import { CURRENCY, formatMoney, parseMoney } from '../../../shared/money.ts'
import { percentToBasisPoints } from '../../../shared/rates.ts'
import type { BillingCycleWire } from '../../../shared/schemas/billing.ts'
import type { PayoutWire } from '../../../shared/schemas/payouts.ts'
import type { SaleWithReceipt } from '../../../shared/schemas/sales.ts'
import type { CreatorSummaryWire, MerchantSummaryWire } from '../../../shared/schemas/summaries.ts'
import { proceduresOf } from '../../platform/api/procedure.ts'
import { readProcessorEvent } from '../../processor/events.rule.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../../processor/events.settings.ts'
import { basisOf, commissionOn, platformFeeOn } from '../../sales/commission.rule.ts'
import { readOrderFacts } from '../../shopify/order-facts.ts'
import { inputShapeOf } from '../rest-input.ts'
import { appRouter } from '../router.ts'
import { UNSUBSCRIBE_TOKEN_EXAMPLE } from './edge-operations.ts'
import { EXAMPLES } from './examples.ts'
import { openApiDocument } from './openapi.ts'

interface Example {
  schema: unknown
  example?: unknown
  examples?: Record<string, { value: unknown }>
}

interface Place {
  at: string
  schema: unknown
  /** By name; `example` for the only one. */
  examples: Record<string, unknown>
}

const document = openApiDocument(appRouter, 'https://market.example.pk')
const places = [...placesIn(document.paths, '')]

/** Everything in the document that has a schema and so needs an example: bodies, parameters, headers. */
function* placesIn(node: unknown, at: string): Generator<Place> {
  if (typeof node !== 'object' || node === null) return
  if ('schema' in node) {
    const { schema, example, examples } = node as Example
    const named = Object.entries(examples ?? {}).map(([name, { value }]) => [name, value])
    yield { at, schema, examples: examples ? Object.fromEntries(named) : { example } }
    return
  }
  for (const [name, child] of Object.entries(node)) yield* placesIn(child, `${at} ${name}`)
}

test('every body, parameter and header has an example that is valid', () => {
  const { schemas } = document.components as { schemas: Record<string, unknown> }
  const validators = new Map<string, z.ZodType>()
  const validatorOf = (schema: unknown) => {
    const key = JSON.stringify(schema)
    const validator =
      validators.get(key) ?? z.fromJSONSchema(forZod({ ...(schema as object), $defs: schemas }))
    validators.set(key, validator)
    return validator
  }
  assert.ok(places.length > 300)
  for (const { at, schema, examples } of places) {
    assert.ok(Object.keys(examples).length > 0, at)
    for (const [name, value] of Object.entries(examples)) {
      const found =
        value === undefined ? 'there is none' : validatorOf(schema).safeParse(value).error?.message
      assert.is(found, undefined, `${at} ${name}: ${found}`)
    }
  }
})

/** zod reads neither \p{…} in a pattern nor references to URIs; the test of bodies covers the patterns. */
function forZod(schema: object): z.core.JSONSchema.JSONSchema {
  return JSON.parse(JSON.stringify(schema), (key, value) => {
    if (key === 'pattern' && value.includes('\\p{')) return undefined
    if (key === 'format' && value === 'uri-reference') return undefined
    return key === '$ref' ? value.replace('#/components/schemas/', '#/$defs/') : value
  })
}

test('every request body passes the checks of its procedure', () => {
  const seen: string[] = []
  for (const procedure of proceduresOf(appRouter)) {
    const { rest } = procedure.meta
    const body = EXAMPLES.bodies[procedure.name]
    if (!rest || !body) continue
    seen.push(procedure.name)
    const { input } = inputShapeOf(procedure, rest)
    const named = [...rest.path.matchAll(/:(\w+)/g)].map(([, name = '']) => [name, sale.id])
    input.parse({ ...Object.fromEntries(named), ...body })
  }
  assert.equal(seen.sort(), Object.keys(EXAMPLES.bodies).sort(), 'and no example is left over')
})

test('no example is a placeholder, and every id is a UUIDv7', () => {
  for (const { at, examples } of places) {
    for (const text of textsIn(examples)) {
      assert.not.match(text, /^(text|string|example|value|foo|bar|x+|lorem.*)$/i, at)
      // Shopify's delivery ids are its own, and the token starts with an id.
      const isOther = text === EXAMPLES.edge.delivery || text === UNSUBSCRIBE_TOKEN_EXAMPLE
      if (/^[0-9a-f]{8}-/.test(text) && !isOther) {
        const time = Number.parseInt(text.replaceAll('-', '').slice(0, 12), 16)
        assert.match(text, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/, at)
        assert.is(new Date(time).getUTCFullYear(), 2026, `${at} ${text}`)
      }
    }
  }
})

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsIn)
}

const sale = EXAMPLES.components.SaleWithReceipt as SaleWithReceipt
const cycle = EXAMPLES.components.BillingCycle as BillingCycleWire
const payout = EXAMPLES.components.Payout as PayoutWire
const creator = EXAMPLES.components.CreatorSummary as CreatorSummaryWire
const merchant = EXAMPLES.components.MerchantSummary as MerchantSummaryWire

const paisa = (text: string | null | undefined) => {
  const amount = parseMoney(text ?? '')
  if (amount === null) throw new Error(`${text} is not an amount`)
  return amount
}
const rate = (percent: number | null | undefined) => percentToBasisPoints(percent ?? Number.NaN) ?? 0
const sum = (amounts: string[]) => amounts.reduce((total, amount) => total + paisa(amount), 0)

test("the store's order leads to the sale: its lines, net amount, commission and fee", () => {
  const { receipt } = sale
  const facts = readOrderFacts(JSON.stringify(EXAMPLES.edge.order), 'aff_ref')
  const { lines, netAmount } = basisOf(facts, receipt.product_ids)
  const amounts = lines.map(({ unit_price, gross, discount, tax, net, ...line }) => ({
    ...{ ...line, unit_price: formatLineAmount(unit_price), gross: formatMoney(gross) },
    ...{ discount: formatMoney(discount), tax: formatMoney(tax), net: formatMoney(net) },
  }))
  assert.equal(receipt.lines, amounts)
  const commission = commissionOn(netAmount, rate(receipt.commission_rate))
  const fee = platformFeeOn(commission, rate(receipt.platform_fee_rate))
  for (const shown of [sale, receipt]) {
    const found = [shown.net_amount, shown.commission, shown.platform_fee]
    assert.equal(found, [netAmount, commission, fee].map(formatMoney))
  }
  const credit = EXAMPLES.components.CreditRequest as { amount: string }
  assert.is(paisa(credit.amount), commission + fee, 'a credit for the whole sale')
})

test('the cycle, the payment and the payout carry the same amounts', () => {
  const totals = paisa(cycle.commission_total) + paisa(cycle.fee_total)
  assert.is(paisa(cycle.amount_due), totals - paisa(cycle.credit_total))
  const { billing_cycle, payouts } = sale.outcome
  assert.equal([billing_cycle?.id, billing_cycle?.amount_due], [cycle.id, cycle.amount_due])
  assert.equal([payouts[0]?.id, payouts[0]?.share], [payout.id, billing_cycle?.creator_share])
  const amounts = Object.values(EXAMPLES.edge.processor_events).map((body) => {
    const event = readProcessorEvent(body, GENERIC_PROCESSOR_EVENTS)
    return 'amount' in event && event.amount
  })
  assert.equal(amounts, [cycle.amount_due, payout.amount, payout.amount].map(paisa))
  assert.is(cycle.currency, CURRENCY)
})

test('the summaries add up', () => {
  const open = merchant.open_cycle
  const commission = paisa(open?.commission_total)
  for (const parts of [open?.by_offer, open?.by_creator])
    assert.is(sum((parts ?? []).map((one) => one.commission)), commission)
  const due = commission + paisa(open?.fee_total) - paisa(open?.expected_credit)
  assert.is(paisa(open?.expected_amount_due), due)
  const missing = paisa(creator.payout_threshold) - paisa(creator.next_payout.amount)
  assert.is(paisa(creator.next_payout.missing), missing)
  for (const { sales } of [merchant, creator]) {
    const rejected = sales.rejected_by_reason.reduce((total, one) => total + one.sales, 0)
    assert.is(rejected, sales.rejected)
  }
})

test.run()
