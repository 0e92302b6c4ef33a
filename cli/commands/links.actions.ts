import { OPERATOR } from '../../server/flags/audit.service.ts'
import { setCoupon } from '../../server/links/coupons.service.ts'
import { endLink } from '../../server/links/end-link.service.ts'
import type { LinkRecord } from '../../server/links/links.service.ts'
import { listLinks, wireLink } from '../../server/reports/listed-links.service.ts'
import { couponCodeInput } from '../../shared/schemas/links.ts'
import type { PageOptions } from '../command.ts'
import { confirm, reads, writes } from '../context.ts'
import { wrongUsage } from '../failures.ts'
import { nameOf, peopleOf, scopeOf } from '../lists.ts'
import { wireTime } from '../terminal/output.ts'
import { money } from '../terminal/table.ts'

export const list = reads(async ({ platform, out }, options: PageOptions) => {
  const page = await listLinks(platform, await scopeOf(platform, options), options)
  const person = await peopleOf(platform, page.items, (link) => link.creator_id)
  out.showPage(page, {
    columns: [
      { title: 'Link', cell: (link) => link.slug },
      { title: 'Creator', flexible: true, cell: (link) => nameOf(person(link.creator_id)) },
      money('Earned', (link) => link.commissionEarned),
      { title: 'Sales', right: true, cell: (link) => link.acceptedSales },
      { title: 'Clicks', right: true, cell: (link) => link.clicks },
      { title: 'Active', cell: (link) => (link.ended_at ? 'ended' : link.active ? 'yes' : 'no') },
      { title: 'Offer', flexible: true, cell: (link) => link.offer.title },
      { title: 'Code', cell: (link) => link.couponCode },
      { title: 'Rate', right: true, cell: rateOf },
    ],
    none: 'No links.',
    wire: (link) => ({ ...wireLink(platform, link), creator: person(link.creator_id) }),
  })
})

/** A link's rate; beside one for this creator only, the offer's. */
export function rateOf({ commission_rate, offer_rate }: Pick<LinkRecord, 'commission_rate' | 'offer_rate'>) {
  const rate = `${commission_rate / 100} %`
  return offer_rate === null ? rate : `${rate} (offer ${offer_rate / 100} %)`
}

export const end = writes(async (context, slug: string, { reason = null }: { reason?: string | null }) => {
  const { platform, out } = context
  await confirm(context, `End link ${slug}? It cannot be taken back.`)
  const link = await endLink(platform, { slug, actor: OPERATOR, reason })
  const document = { slug, ended_at: wireTime(link.ended_at), end_reason: link.end_reason }
  out.show(document, () => [`Link ${slug} has ended.`])
})

/** Without a code, `--remove` was given. */
export const changeCoupon = writes(async ({ platform, out }, slug: string, text: string | undefined) => {
  const parsed = couponCodeInput.optional().safeParse(text)
  if (!parsed.success) {
    throw wrongUsage('A coupon code has 3 to 40 letters, digits, hyphens or underscores.')
  }
  const code = parsed.data ?? null
  await setCoupon(platform, { slug, actor: OPERATOR, code })
  out.show({ slug, coupon_code: code }, () => [
    code === null ? `Link ${slug} has no coupon code.` : `Link ${slug} has the coupon code ${code}.`,
  ])
})
