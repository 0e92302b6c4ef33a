import type { Store } from '../../shared/schemas/stores.ts'

/** What an operator needs to know of a connected store. */
export interface CheckedStore extends Store {
  /** Rejected orders of the last 30 days by reason. */
  rejected_30d: Record<string, number>
  /** Merchants with a claim on the same domain, this one included. */
  claims: number
}

/** `todo`: something must be done, as `next` says. */
export interface StoreFinding {
  state: 'ok' | 'note' | 'todo'
  detail: string
  next: string | null
}

const ok = (detail: string): StoreFinding => ({ state: 'ok', detail, next: null })
const note = (detail: string, next: string | null = null): StoreFinding => ({ state: 'note', detail, next })
const todo = (detail: string, next: string): StoreFinding => ({ state: 'todo', detail, next })

/** What arrived from a store, what was refused, and what to do. `timeText` writes the times of the wire for people. */
export function checkStore(store: CheckedStore, timeText: (time: string) => string): StoreFinding[] {
  const findings = [
    arrivals(store, timeText),
    refusals(store, timeText),
    unreadable(store),
    sources(store),
    rejections(store),
    claims(store),
  ]
  return findings.filter((finding) => finding !== null)
}

const TEST = 'choose "Send test notification" beside the webhook'

function arrivals(store: Store, timeText: (time: string) => string): StoreFinding {
  const { status, last_event_at, webhook_url } = store
  const since = last_event_at === null ? null : timeText(last_event_at)
  if (status === 'silent') {
    return todo(
      `The last signed event arrived ${since}, after orders came regularly.`,
      `In Shopify, look for the webhook under Settings → Notifications → Webhooks: Shopify deletes it after many failures. Create it again with the URL ${webhook_url} and ${TEST}.`,
    )
  }
  if (status === 'waiting') {
    const local = !webhook_url.startsWith('https:')
    return todo(
      'No signed event has arrived since the store was connected.',
      local
        ? `Shopify sends to https addresses only, and this service is known as ${webhook_url}: set PUBLIC_BASE_URL to its public address.`
        : `In Shopify, create the webhook "Order payment" with the URL ${webhook_url} and ${TEST}.`,
    )
  }
  if (status === 'xml') {
    return todo(
      `The last event, which arrived ${since}, is XML: its webhook was made with the format XML, and only JSON can be read.`,
      `In Shopify, edit the webhook, or create it again, with the event "Order payment" and the format JSON, and ${TEST}.`,
    )
  }
  if (status === 'no_order_payment') {
    return todo(
      `Signed events arrive, the last one ${since}, but none of the event "Order payment": the webhook was made for another event, such as "Order creation", so no order becomes a sale.`,
      `In Shopify, create one more webhook with the event "Order payment", the format JSON and the URL ${webhook_url}, and ${TEST}.`,
    )
  }
  return since === null ? note('No signed event has arrived.') : ok(`The last signed event arrived ${since}.`)
}

function refusals(store: CheckedStore, timeText: (time: string) => string): StoreFinding {
  const { status, last_refusal, id } = store
  if (last_refusal === null) return ok('No delivery was refused.')
  const reason = last_refusal.reason === 'no_signature' ? 'it had no signature' : 'its signature is wrong'
  const refused = `A delivery was refused ${timeText(last_refusal.at)}: ${reason}`
  if (status !== 'rejecting') return note(`${refused}. Nothing to do: signed ones have arrived since.`)
  return todo(
    `${refused}, and no signed one arrived since.`,
    last_refusal.reason === 'no_signature'
      ? 'Shopify signs each delivery: see that your proxy keeps the headers Shopify-Hmac-Sha256 and X-Shopify-Hmac-Sha256. If valid events arrive, someone else sent it.'
      : `Store the secret that Shopify shows below its webhooks (PATCH /stores/${id} {"webhook_secret": "..."}) and ${TEST}.`,
  )
}

function unreadable({ unreadable_7d: orders }: Store): StoreFinding | null {
  if (orders === 0) return null
  return todo(
    `${orders} signed ${orders === 1 ? 'order' : 'orders'} of the last 7 days could not be read.`,
    'See why with "affiliate webhooks events --state set_aside" and "affiliate webhooks show EVENT --body".',
  )
}

function sources({ tracked_30d: tracked, script_tag }: Store): StoreFinding | null {
  const { cart, landing, line, coupon, none } = tracked
  if (cart + landing + line + coupon + none === 0) return null
  const detail = `Orders of 30 days by what led to their link: cart ${cart}, line ${line}, landing page ${landing}, coupon ${coupon}, none ${none}.`
  const next = `Put ${script_tag} before </head> in the theme's theme.liquid.`
  const days = /data-days="(\d+)"/.exec(script_tag)?.[1]
  const kept = `An offer counts clicks for ${days} days: the script's line in the theme must say data-days="${days}".`
  if (cart + line > 0) return days === undefined ? ok(detail) : note(detail, kept)
  if (landing > 0)
    return todo(`${detail} The cart carries no reference, so buyers who return later are lost.`, next)
  return note(
    detail,
    coupon > 0 ? null : `If creators have sent visitors, the theme's script may be missing. ${next}`,
  )
}

function rejections({ rejected_30d }: CheckedStore): StoreFinding | null {
  const reasons = Object.entries(rejected_30d).sort(([, one], [, other]) => other - one)
  if (reasons.length === 0) return null
  const counts = reasons.map(([reason, orders]) => `${reason} ${orders}`).join(', ')
  return note(`Rejected orders of 30 days: ${counts}.`, '"affiliate sales explain ORDER" says why for each.')
}

function claims({ claims: count, shop_domain }: CheckedStore): StoreFinding | null {
  if (count < 2) return null
  return note(
    `${count} merchants claim ${shop_domain}; each delivery belongs to the one whose secret signed it.`,
    `If one does not own the shop: affiliate stores release ${shop_domain} --merchant USER`,
  )
}
