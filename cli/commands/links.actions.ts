import { OPERATOR } from '../../server/flags/audit.service.ts'
import { setCoupon } from '../../server/links/coupons.service.ts'
import { listLinks, wireLink } from '../../server/reports/listed-links.service.ts'
import { couponCodeInput } from '../../shared/schemas/links.ts'
import type { PageOptions } from '../command.ts'
import { reads, writes } from '../context.ts'
import { wrongUsage } from '../failures.ts'
import { nameOf, peopleOf, scopeOf } from '../lists.ts'
import { money } from '../terminal/table.ts'

export const list = reads(async ({ platform, out }, options: PageOptions) => {
  const page = await listLinks(platform, await scopeOf(platform, options), options)
  const person = await peopleOf(platform, page.items, (link) => link.creator_id)
  out.showPage(page, {
    columns: [
      { title: 'Link', cell: (link) => link.slug },
      { title: 'Creator', flexible: true, cell: (link) => nameOf(person(link.creator_id)) },
      { title: 'Offer', flexible: true, cell: (link) => link.offer.title },
      { title: 'Active', cell: (link) => (link.active ? 'yes' : 'no') },
      { title: 'Code', optional: true, cell: (link) => link.couponCode },
      { title: 'Rate', right: true, optional: true, cell: (link) => `${link.commission_rate / 100} %` },
      { title: 'Clicks', right: true, cell: (link) => link.clicks },
      { title: 'Sales', right: true, cell: (link) => link.acceptedSales },
      money('Earned', (link) => link.commissionEarned),
    ],
    wire: (link) => ({ ...wireLink(platform, link), creator: person(link.creator_id) }),
  })
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
