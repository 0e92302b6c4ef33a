import {
  listApplications,
  type ShownApplication,
  wireApplication,
} from '../../server/applications/applications.service.ts'
import type { PageOptions } from '../command.ts'
import { reads } from '../context.ts'
import { nameOf, peopleOf, scopeOf } from '../lists.ts'
import { rateOf } from './links.actions.ts'

type ListOptions = PageOptions & { status?: ShownApplication['status'] }

export const list = reads(async ({ platform, out }, options: ListOptions) => {
  const page = await listApplications(platform, await scopeOf(platform, options), options)
  const person = await peopleOf(platform, page.items, (row) => [row.creator_id, row.merchant_id])
  out.showPage(page, {
    columns: [
      { title: 'Creator', flexible: true, cell: (row) => nameOf(person(row.creator_id)) },
      { title: 'Offer', flexible: true, cell: (row) => row.offer.title },
      { title: 'Status', cell: (row) => row.status },
      { title: 'Link', cell: (row) => row.link?.slug ?? null },
      out.moment('Made', (row) => row.created_at),
      { title: 'Rate', right: true, cell: (row) => row.link && rateOf(row.link) },
    ],
    none: 'No applications.',
    wire: (row) => ({
      ...wireApplication(platform, row),
      creator: person(row.creator_id),
      merchant: person(row.merchant_id),
    }),
  })
})
