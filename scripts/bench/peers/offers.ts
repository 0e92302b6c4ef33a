/**
 * The offer list written by hand for one sort: node:http, one keyset query on the driver, the answer's
 * fields, JSON.stringify. Nothing is checked, counted or limited.
 */
import { basisPointsToPercent } from '../../../shared/rates.ts'
import { openDriver } from '../driver.ts'
import { listen } from './listen.ts'

const url = process.env.DATABASE_URL ?? ''
const driver = openDriver(url)
const hint = url.startsWith('sqlite:') ? 'indexed by offers_live_high' : ''

const QUERY = (upTo: string) => `
  select offers.*, users.display_name from offers ${hint} join users on users.id = offers.merchant_id
  where offers.status = 'live' and users.suspended_at is null
    and offers.commission_rate >= ? and ${upTo}
  order by offers.commission_rate desc, offers.id desc limit 51`
const FIRST = QUERY('offers.commission_rate <= ?')
// The place is in the range, so it is the upper bound; with both, SQLite would walk down from the other one.
const NEXT = QUERY('(offers.commission_rate, offers.id) < (?, ?)')

interface Row {
  id: string
  merchant_id: string
  display_name: string
  title: string
  description: string | null
  product_url: string
  image_url: string | null
  category: string
  niche: string
  commission_rate: number
  status: string
  attribution_window_days: number
  product_ids: string | null
  created_at: number
  updated_at: number
}

listen(async (request, response) => {
  const query = new URL(request.url ?? '/', 'http://peer').searchParams
  const min = Number(query.get('min') ?? 0)
  const rate = query.get('rate')
  const rows =
    rate === null
      ? await driver.all<Row>(FIRST, [min, Number(query.get('max') ?? 10_000)])
      : await driver.all<Row>(NEXT, [min, Number(rate), query.get('id')])
  const items = rows.slice(0, 50)
  const last = items.at(-1)
  const body = JSON.stringify({
    items: items.map(wire),
    next_cursor: rows.length > 50 && last ? `${last.commission_rate}.${last.id}` : null,
  })
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
})

function wire(row: Row) {
  return {
    id: row.id,
    merchant: { id: row.merchant_id, display_name: row.display_name },
    title: row.title,
    description: row.description,
    product_url: row.product_url,
    image_url: row.image_url,
    category: row.category,
    niche: row.niche,
    commission_rate: basisPointsToPercent(row.commission_rate),
    status: row.status,
    vetting: 'not_needed',
    attribution_window_days: row.attribution_window_days,
    product_ids: row.product_ids === null ? null : JSON.parse(row.product_ids),
    created_at: new Date(row.created_at).toISOString(),
    updated_at: new Date(row.updated_at).toISOString(),
  }
}
