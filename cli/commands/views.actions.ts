import { wireApplication } from '../../server/applications/applications.service.ts'
import { wireFlag } from '../../server/flags/flags.service.ts'
import { wireOffer } from '../../server/offers/offers.service.ts'
import { wirePayout } from '../../server/payouts/payout-wire.ts'
import { mapPage, type Page } from '../../server/platform/api/page.ts'
import { attemptState } from '../../server/processor/attempts.service.ts'
import { wireLink } from '../../server/reports/listed-links.service.ts'
import {
  type UserView,
  viewLink,
  viewOffer,
  viewPayout,
  viewUser,
} from '../../server/reports/operator-views.service.ts'
import { wireNamedSale } from '../../server/sales/sale-wire.ts'
import { wireSession } from '../../server/users/user-wire.ts'
import { formatMoney, parseMoney } from '../../shared/money.ts'
import { reads } from '../context.ts'
import { nameOf, peopleOf, personOf } from '../lists.ts'
import { displayMoney, type Output, wireTime } from '../terminal/output.ts'
import { money, type RowColumn } from '../terminal/table.ts'
import { rateOf } from './links.actions.ts'
import { wireMail } from './mail.actions.ts'

interface ViewOptions {
  /** The most rows of each list. */
  limit: number
}

export const showUser = reads(async ({ platform, out }, user: string, { limit }: ViewOptions) => {
  const view = await viewUser(platform, user, limit)
  const { profile, stores, offers, links, sales, payouts, sessions, mails, flags } = view
  const document = {
    ...profile,
    suspended_at: wireTime(view.user.suspended_at),
    stores,
    offers: offers && mapPage(offers, wireOffer),
    links: links && mapPage(links, (link) => wireLink(platform, link)),
    sales: sales && mapPage(sales, (sale) => wireNamedSale(sale, 'merchant')),
    payouts: payouts && mapPage(payouts, wirePayout),
    sessions: mapPage(sessions, wireSession),
    mails: mapPage(mails, wireMail),
    open_flags: mapPage(flags, wireFlag),
  }
  out.show(document, () => [
    out.heading(`${profile.email}, ${profile.role}`),
    ...out.pairs(accountPairs(view, out), { cut: true }),
    ...sections(
      part('Stores', stores, out, [
        { title: 'Stores', flexible: true, cell: (store) => store.shop_domain },
        { title: 'Status', cell: (store) => store.status },
        out.moment('Last order', (store) => momentOf(store.last_event_at)),
      ]),
      part('Offers', offers, out, [
        { title: 'Offers', flexible: true, cell: (offer) => offer.title },
        { title: 'Rate', right: true, cell: (offer) => `${offer.commission_rate / 100} %` },
        { title: 'Status', cell: (offer) => offer.status },
        { title: 'Vetting', cell: (offer) => offer.vetting },
      ]),
      part('Links', links, out, LINK_COLUMNS),
      part('Sales', sales, out, saleColumns(out)),
      part('Payouts', payouts, out, [
        { title: 'Payouts', cell: (payout) => payout.state },
        money('Amount', (payout) => payout.amount),
        out.moment('Made', (payout) => payout.created_at),
        out.moment('Settled', (payout) => payout.settled_at),
      ]),
      part('Sessions', sessions, out, [
        out.moment('Sessions', (session) => session.last_used_at ?? session.created_at),
        { title: 'From', cell: (session) => session.address_prefix },
        { title: 'Program', flexible: true, cell: (session) => session.agent },
      ]),
      part('Mails', mails, out, [
        { title: 'Mails', flexible: true, cell: (mail) => mail.kind },
        { title: 'State', cell: (mail) => mail.state },
        out.moment('Written', (mail) => mail.created_at),
        { title: 'Error', flexible: true, cell: (mail) => mail.last_error },
      ]),
      part('Open flags', flags, out, flagColumns(out)),
    ),
  ])
})

type Pairs = (readonly [name: string, value: string] | false)[]

function accountPairs({ user, profile }: UserView, out: Output): Pairs {
  const { payout_destination: destination, upcoming_payout_destination: upcoming } = profile
  const { billing_account: billing, balance, account } = profile
  const verified = user.email_verified_at === null ? 'e-mail not verified' : 'e-mail verified'
  const rupees = (text: string) => displayMoney(parseMoney(text) ?? 0)
  return [
    ['Name', user.display_name],
    ['State', user.suspended_at === null ? 'active' : `suspended since ${out.time(user.suspended_at)}`],
    ['Since', `${out.time(user.created_at)}, ${verified}`],
    ['Second factor', profile.second_factor ? 'on' : 'off'],
    destination !== undefined && ['Pays to', accountText(destination)],
    upcoming !== undefined &&
      upcoming !== null && [
        'Later to',
        `${accountText(upcoming)}, from ${out.time(momentOf(upcoming.effective_at))}`,
      ],
    billing !== undefined && [
      'Billed from',
      billing === null ? 'no billing account' : `${billing.kind} ending ${billing.last4}`,
    ],
    balance !== undefined && [
      'Balance',
      `${rupees(balance.released)} released, ${rupees(balance.pending)} pending`,
    ],
    balance !== undefined && [
      'Paid out',
      `${rupees(balance.paid)} paid, ${rupees(balance.in_transit)} in transit`,
    ],
    account !== undefined && [
      'Owes',
      `${rupees(account.unpaid)} invoiced, ${rupees(account.open_cycle_due)} in the open cycle`,
    ],
    account !== undefined && ['Credit', rupees(account.credit_available)],
    ['Id', user.id],
  ]
}

function accountText(account: { iban_last4: string; account_title: string } | null): string {
  return account === null
    ? 'no payout destination'
    : `IBAN ending ${account.iban_last4}, ${account.account_title}`
}

export const showOffer = reads(async ({ platform, out }, offerId: string, { limit }: ViewOptions) => {
  const { offer, statuses, applications, links, sales, flags } = await viewOffer(platform, offerId, limit)
  const merchant = await personOf(platform, offer.merchant_id)
  const document = {
    ...wireOffer(offer),
    merchant,
    statuses: statuses.map(({ status, changed_at }) => ({ status, changed_at: wireTime(changed_at) })),
    applications: mapPage(applications, (row) => wireApplication(platform, row)),
    links: mapPage(links, (link) => wireLink(platform, link)),
    sales: mapPage(sales, (sale) => wireNamedSale(sale, 'merchant')),
    open_flags: mapPage(flags, wireFlag),
  }
  const rate = `${offer.commission_rate / 100} %, orders within ${offer.attribution_window_days} days of a visit`
  out.show(document, () => [
    out.heading(offer.title),
    ...out.pairs(
      [
        ['Merchant', nameOf(merchant)],
        ['Status', `${offer.status}, vetting ${offer.vetting}`],
        offer.vetting_reason !== null && ['Rejected', offer.vetting_reason],
        ['Commission', rate],
        ['Product', offer.product_url],
        ['Products', offer.product_ids?.join(', ') ?? 'all of the store'],
        ['Category', `${offer.category}, ${offer.niche}`],
        Boolean(offer.description) && ['Text', offer.description ?? ''],
        ['Paid rate', offer.paid_rate_90d === null ? 'unknown' : `${offer.paid_rate_90d} % in 90 days`],
        ['Changed', out.time(offer.updated_at)],
        ['Id', offer.id],
      ],
      { cut: true },
    ),
    ...sections(
      part('Statuses', { items: statuses, next_cursor: null }, out, [
        { title: 'Statuses', cell: ({ status }) => status },
        out.moment('From', ({ changed_at }) => changed_at),
      ]),
      part('Applications', applications, out, [
        { title: 'Applications', flexible: true, cell: (row) => row.creator.display_name },
        { title: 'Status', cell: (row) => row.status },
        out.moment('Made', (row) => row.created_at),
      ]),
      part('Links', links, out, LINK_COLUMNS),
      part('Sales', sales, out, saleColumns(out)),
      part('Open flags', flags, out, flagColumns(out)),
    ),
  ])
})

export const showLink = reads(async ({ platform, out }, slug: string, { limit }: ViewOptions) => {
  const { link, coupons, sales, flags } = await viewLink(platform, slug, limit)
  const { merchant_id, creator_id } = link
  const person = await peopleOf(platform, [link], () => [merchant_id, creator_id])
  const [merchant, creator] = [person(merchant_id), person(creator_id)]
  const wire = wireLink(platform, link)
  const document = {
    ...wire,
    creator,
    merchant,
    coupons: coupons.map(({ code, starts_at, ends_at }) => {
      return { code, starts_at: wireTime(starts_at), ends_at: wireTime(ends_at) }
    }),
    sales: mapPage(sales, (sale) => wireNamedSale(sale, 'merchant')),
    open_flags: mapPage(flags, wireFlag),
  }
  out.show(document, () => [
    out.heading(wire.url),
    ...out.pairs(
      [
        ['Creator', nameOf(creator)],
        ['Merchant', nameOf(merchant)],
        ['Offer', `${link.offer.title} (${link.offer.status})`],
        ['Offer id', link.offer_id],
        ['Commission', `${rateOf(link)}, orders within ${link.attribution_window_days} days of a visit`],
        ['Products', link.product_ids?.join(', ') || 'all of the store'],
        ['Active', link.active ? 'yes' : 'no'],
        link.ended_at !== null && ['Ended', `${out.time(link.ended_at)} ${link.end_reason ?? ''}`],
        ['Visits', `${link.clicks}, ${link.uniqueClicks} unique`],
        ['Accepted', `${link.acceptedSales}, ${displayMoney(link.commissionEarned)} of commission`],
        ['Since', out.time(link.created_at)],
        ['Id', link.id],
      ],
      { cut: true },
    ),
    ...sections(
      part('Codes', { items: coupons, next_cursor: null }, out, [
        { title: 'Codes', cell: ({ code }) => code },
        out.moment('From', ({ starts_at }) => starts_at),
        out.moment('To', ({ ends_at }) => ends_at),
      ]),
      part('Sales', sales, out, saleColumns(out)),
      part('Open flags', flags, out, flagColumns(out)),
    ),
  ])
})

export const showPayout = reads(async ({ platform, out }, payoutId: string, { limit }: ViewOptions) => {
  const { payout, destination, lines, calls, flags } = await viewPayout(platform, payoutId, limit)
  const person = await peopleOf(platform, lines, (line) => line.merchant_id)
  const creator = await personOf(platform, payout.creator_id)
  const document = {
    ...wirePayout(payout),
    creator,
    destination,
    lines: lines.map(({ billing_cycle_id, merchant_id, amount }) => {
      return { billing_cycle_id, merchant: person(merchant_id), amount: formatMoney(amount) }
    }),
    calls: calls.map((call) => ({
      id: call.id,
      state: attemptState(call),
      tries: call.tries,
      detail: call.detail,
      processor_id: call.processor_id,
      created_at: wireTime(call.created_at),
      settled_at: wireTime(call.settled_at),
    })),
    open_flags: mapPage(flags, wireFlag),
  }
  out.show(document, () => [
    out.heading(`Payout of ${displayMoney(payout.amount)}, ${payout.state}`),
    ...out.pairs(
      [
        ['Creator', nameOf(creator)],
        ['Pays to', destination === null ? 'not sent yet' : accountText(destination)],
        ['Made', out.time(payout.created_at)],
        ['Settled', out.time(payout.settled_at)],
        ['At the processor', payout.processor_payout_id ?? '–'],
        payout.failure_reason !== null && ['Failed', payout.failure_reason],
        ['Id', payout.id],
      ],
      { cut: true },
    ),
    ...sections(
      part('Calls', newest(calls.toReversed(), limit), out, [
        out.moment('Calls', (call) => call.created_at),
        { title: 'State', cell: attemptState },
        { title: 'Tries', right: true, cell: (call) => call.tries },
        { title: 'Detail', flexible: true, cell: (call) => call.detail },
      ]),
      part('Carries', newest(lines, limit), out, [
        { title: 'Carries', flexible: true, cell: (line) => nameOf(person(line.merchant_id)) },
        money('Amount', (line) => line.amount),
        { title: 'Of cycle', cell: (line) => line.billing_cycle_id },
      ]),
      part('Open flags', flags, out, flagColumns(out)),
    ),
  ])
})

/** The newest rows of one list on a screen, with its name as the first title. */
interface Part {
  name: string
  lines: readonly string[]
}

function part<Row>(
  name: string,
  page: Page<Row> | null,
  out: Output,
  columns: readonly RowColumn<Row>[],
): Part | null {
  if (page === null) return null
  const [first, ...others] = columns
  const title = page.next_cursor === null ? name : `${name}, newest`
  const titled = first === undefined ? columns : [{ ...first, title }, ...others]
  return { name, lines: page.items.length === 0 ? [] : out.table(page.items, titled) }
}

/** The lists that have rows, one under the other, and the names of those that have none. */
function sections(...parts: (Part | null)[]): string[] {
  const shown = parts.filter((one) => one !== null)
  const empty = shown.filter(({ lines }) => lines.length === 0).map(({ name }) => name.toLowerCase())
  return [
    ...shown.flatMap(({ lines }) => (lines.length === 0 ? [] : ['', ...lines])),
    ...(empty.length === 0 ? [] : ['', `None: ${empty.join(', ')}`]),
  ]
}

/** A list that is read whole, cut for the screen. */
function newest<Row>(rows: readonly Row[], limit: number): Page<Row> {
  return { items: rows.slice(0, limit), next_cursor: rows.length > limit ? 'more' : null }
}

type LinkRow = NonNullable<UserView['links']>['items'][number]
type SaleRow = NonNullable<UserView['sales']>['items'][number]
type FlagRow = UserView['flags']['items'][number]

const LINK_COLUMNS: RowColumn<LinkRow>[] = [
  { title: 'Links', cell: (link) => link.slug },
  { title: 'Offer', flexible: true, cell: (link) => link.offer.title },
  { title: 'Active', cell: (link) => (link.ended_at ? 'ended' : link.active ? 'yes' : 'no') },
  { title: 'Visits', right: true, cell: (link) => link.clicks },
  { title: 'Sales', right: true, cell: (link) => link.acceptedSales },
  money('Earned', (link) => link.commissionEarned),
]

function saleColumns(out: Output): RowColumn<SaleRow>[] {
  return [
    { title: 'Sales', flexible: true, cell: (sale) => sale.order_name ?? sale.order_id },
    { title: 'Decision', flexible: true, cell: (sale) => sale.rejection_reason ?? sale.acceptance_status },
    money('Commission', (sale) => sale.commission),
    out.moment('Recorded', (sale) => sale.created_at),
    money('Net', (sale) => sale.net_amount),
  ]
}

function flagColumns(out: Output): RowColumn<FlagRow>[] {
  return [
    { title: 'Open flags', cell: (flag) => flag.kind },
    { title: 'Severity', cell: (flag) => flag.severity },
    { title: 'What', flexible: true, cell: (flag) => flag.summary },
    out.moment('Since', (flag) => flag.created_at),
  ]
}

/** A time on the wire as epoch ms. */
function momentOf(time: string | null): number | null {
  return time === null ? null : Date.parse(time)
}
