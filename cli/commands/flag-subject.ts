import { getCycle } from '../../server/billing/billing.service.ts'
import type { FlagRow, SubjectType } from '../../server/flags/flags.service.ts'
import { findEventsNamed } from '../../server/inbox/events.service.ts'
import { linkRecords } from '../../server/links/links.service.ts'
import { offerRecords } from '../../server/offers/offers.service.ts'
import { getPayout } from '../../server/payouts/payouts.service.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { findSale } from '../../server/sales/sales.service.ts'
import { claimsInUse } from '../../server/stores/remove-store.service.ts'
import { getStoresById } from '../../server/stores/stores.service.ts'
import { findUser } from '../../server/users/users.service.ts'
import { displayMoney, type Output } from '../terminal/output.ts'

/** What a flag is about, as far as it is still there. */
export interface Subject {
  pairs: (readonly [name: string, value: string] | false)[]
  /** The accounts behind it, by what they are in it. */
  people: { as: string; id: string }[]
}

/** Reads what a flag is about, for the person who decides on it. */
export async function openSubject(platform: Platform, out: Output, flag: FlagRow): Promise<Subject> {
  const read: Reader | undefined = READERS[flag.subject_type as SubjectType]
  return (await read?.(platform, out, eventOf(flag) ?? flag.subject_id)) ?? { pairs: [], people: [] }
}

/** The event that a flag is about, the latest one of several; `null` for flags about something else. */
export function eventOf({ subject_type, subject_id, evidence }: FlagRow): string | null {
  if (subject_type === 'inbound_event') return subject_id
  if (subject_type !== 'processor_event_type' && subject_type !== 'store_events') return null
  const latest = JSON.parse(evidence) as { latest_event_id?: string; latest_event_ids?: string[] }
  return latest.latest_event_id ?? latest.latest_event_ids?.[0] ?? null
}

type Reader = (platform: Platform, out: Output, id: string) => Promise<Subject | null>

/** One for each type, which the compiler asks for. */
const READERS: Record<SubjectType, Reader> = {
  user: async (platform, out, id) => {
    const user = await findUser(platform, id)
    return {
      pairs: [
        ['e-mail', user.email],
        ['name', user.display_name],
        ['role', user.role],
        ['state', user.suspended_at === null ? 'active' : `suspended since ${out.time(user.suspended_at)}`],
        ['since', out.time(user.created_at)],
      ],
      people: [{ as: user.role, id }],
    }
  },
  offer: async (platform, _out, id) => {
    const offer = (await offerRecords(platform, platform.database.reader, [id])).get(id)
    if (!offer) return null
    return {
      pairs: [
        ['offer', offer.title],
        ['product', offer.product_url],
        ['commission', `${offer.commission_rate / 100} %`],
        ['status', `${offer.status}, vetting ${offer.vetting}`],
      ],
      people: [{ as: 'merchant', id: offer.merchant_id }],
    }
  },
  affiliate_link: async (platform, out, id) => {
    const link = (await linkRecords(platform.database.reader, [id])).get(id)
    if (!link) return null
    return {
      pairs: [
        ['slug', link.slug],
        ['commission', `${link.commission_rate / 100} %`],
        ['since', out.time(link.created_at)],
      ],
      people: [
        { as: 'creator', id: link.creator_id },
        { as: 'merchant', id: link.merchant_id },
      ],
    }
  },
  store: async (platform, _out, id) => {
    const store = (await getStoresById(platform.database.reader, [id])).get(id)
    if (!store) return null
    return { pairs: [['shop', store.shop_domain]], people: [{ as: 'merchant', id: store.merchant_id }] }
  },
  store_events: async (platform, out, eventId) => {
    const [event] = await findEventsNamed(platform, eventId)
    if (!event) return null
    const { pairs = [], people = [] } = (await READERS.store(platform, out, event.scope)) ?? {}
    const latest = await READERS.inbound_event(platform, out, eventId)
    return { pairs: [...pairs, ...(latest?.pairs ?? [])], people }
  },
  shop_domain: async (platform, _out, domain) => {
    const claims = await claimsInUse(platform, domain)
    return {
      pairs: [
        ['shop', domain],
        ['claims', String(claims.length)],
        ['more', `affiliate stores release ${domain} --merchant USER`],
      ],
      people: claims.map((claim) => ({ as: 'merchant', id: claim.merchant_id })),
    }
  },
  sale: async (platform, out, id) => {
    const sale = await findSale(platform.database.reader, 'all', id)
    if (!sale) return null
    return {
      pairs: [
        ['order', `${sale.order_name ?? ''} (${sale.order_id})`],
        ['decision', sale.rejection_reason ?? sale.acceptance_status],
        ['net', displayMoney(sale.net_amount)],
        ['commission', displayMoney(sale.commission)],
        ['ordered', out.time(sale.ordered_at)],
        ['more', `affiliate sales explain ${id}`],
      ],
      people: [
        ...(sale.creator_id === null ? [] : [{ as: 'creator', id: sale.creator_id }]),
        { as: 'merchant', id: sale.merchant_id },
      ],
    }
  },
  billing_cycle: async (platform, out, id) => {
    const cycle = await getCycle(platform.database.reader, id)
    if (!cycle) return null
    return {
      pairs: [
        ['cycle', `${cycle.state}, ${out.time(cycle.period_start)} to ${out.time(cycle.period_end)}`],
        ['due', displayMoney(cycle.amount_due)],
        ['invoice', cycle.processor_invoice_id ?? 'none'],
      ],
      people: [{ as: 'merchant', id: cycle.merchant_id }],
    }
  },
  payout: async (platform, out, id) => {
    const payout = await getPayout(platform.database.reader, id)
    if (!payout) return null
    return {
      pairs: [
        ['payout', `${displayMoney(payout.amount)}, ${payout.state}`],
        ['made', out.time(payout.created_at)],
        ['at the processor', payout.processor_payout_id ?? 'unknown'],
        payout.failure_reason !== null && ['failed', payout.failure_reason],
      ],
      people: [{ as: 'creator', id: payout.creator_id }],
    }
  },
  inbound_event: async (platform, out, id) => {
    const [event] = await findEventsNamed(platform, id)
    if (!event) return null
    return {
      pairs: [
        ['event', `${event.source}, ${event.topic ?? 'no topic'}, ${event.state}`],
        ['received', out.time(event.received_at)],
        ['why', event.reason ?? '–'],
        ['more', `affiliate webhooks show ${id}`],
      ],
      people: [],
    }
  },
  processor_event_type: (platform, out, eventId) => READERS.inbound_event(platform, out, eventId),
  processor: async (_app, _out, name) => ({ pairs: [['processor', name]], people: [] }),
  database_table: async (_app, _out, name) => ({ pairs: [['table', name]], people: [] }),
}
