import { csvHeader, csvRecords, exportColumns } from '../../exports/export-columns.rule.ts'
import { billingCycle, ID, offer, PRODUCT_ID, payout, sale, store } from './example-data.ts'

/** The fields of Shopify's order that the service reads. */
export const ORDER_EXAMPLE = {
  id: Number(sale.order_id),
  name: sale.order_name,
  created_at: '2026-11-18T21:40:00+05:00',
  currency: 'PKR',
  financial_status: 'paid',
  cancelled_at: null,
  test: false,
  taxes_included: false,
  email: 'hina.raza@mail.example.pk',
  landing_site: `/products/embroidered-lawn-suit?aff_ref=${ID.click}`,
  note_attributes: [],
  line_items: [
    {
      product_id: Number(PRODUCT_ID),
      title: offer.title,
      quantity: 2,
      price: '4999.00',
      discount_allocations: [{ amount: '998.00' }],
      tax_lines: [],
    },
    {
      product_id: 8123456789555,
      title: 'Gift card',
      gift_card: true,
      quantity: 1,
      price: '2000.00',
      discount_allocations: [],
      tax_lines: [],
    },
  ],
}

/** Where the redirect of a click leads. */
export const TRACKED_PRODUCT_URL = `${offer.product_url}?aff_ref=${ID.click}`

export const PROCESSOR_EVENT_EXAMPLES = {
  payment_confirmed: {
    type: 'billing.payment_confirmed',
    data: {
      invoice_id: billingCycle.processor_invoice_id,
      payment_reference: billingCycle.processor_payment_reference,
      amount: billingCycle.amount_due,
      currency: 'PKR',
    },
  },
  payout_confirmed: {
    type: 'payout.confirmed',
    data: {
      payout_id: payout.processor_payout_id,
      reference: ID.payout,
      amount: payout.amount,
      currency: 'PKR',
    },
  },
  payout_failed: {
    type: 'payout.failed',
    data: {
      payout_id: payout.processor_payout_id,
      reference: ID.payout,
      amount: payout.amount,
      currency: 'PKR',
      reason: 'beneficiary account is dormant',
    },
  },
}

/** The store and the delivery id of a webhook. */
export const STORE_DELIVERY_EXAMPLE = {
  domain: store.shop_domain,
  delivery: 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
}

const merchantColumns = exportColumns('sales', 'merchant')

/** A merchant's file of sales as CSV, and as NDJSON. */
export const SALES_FILE_EXAMPLE = csvHeader(merchantColumns) + csvRecords(merchantColumns)(sale)
export const SALES_LINES_EXAMPLE = `${JSON.stringify(sale)}\n`
