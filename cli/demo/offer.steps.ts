import { type Application, application, applicationPage } from '../../shared/schemas/applications.ts'
import { resolvedLink } from '../../shared/schemas/links.ts'
import { type Offer, offer, offerPage } from '../../shared/schemas/offers.ts'
import type { Demo } from './demo.ts'
import type { People, Person } from './people.steps.ts'
import { COUPON_CODE, OFFER } from './scenario.ts'
import { Refused, refusedBy } from './service-client.ts'
import type { StepReport } from './step-report.ts'

export async function publishOffer(demo: Demo, report: StepReport, merchant: Person): Promise<Offer> {
  const { token } = merchant
  const { items } = await demo.client.call('GET', '/offers?mine=true', offerPage, { token })
  const own =
    items.find((item) => item.title === OFFER.title) ??
    (await demo.client.call('POST', '/offers', offer, { token, body: OFFER }))
  report.row(own.title, `${own.commission_rate} % for ${own.attribution_window_days} days after a click`)
  const live = await demo.client.call('PATCH', `/offers/${own.id}/status`, offer, {
    token,
    body: { status: 'live' },
  })
  report.row('status', `draft, then ${live.status}`)
  report.check('status of the offer', live.status, 'live')
  const listed = await demo.client.call('GET', '/offers', offerPage)
  report.check('public list shows the offer', listed.items.filter((item) => item.id === own.id).length, 1)
  return live
}

export interface Applications {
  first: Application
  second: Application
}

export async function applyToOffer(
  demo: Demo,
  report: StepReport,
  people: People,
  offerId: string,
): Promise<Applications> {
  const [first, second] = await Promise.all([
    apply(demo, people.creator, offerId),
    apply(demo, people.otherCreator, offerId),
  ])
  for (const one of [first, second]) report.row(one.creator.display_name, one.status)
  const path = `/offers/${offerId}/applications?status=pending`
  const { items } = await demo.client.call('GET', path, applicationPage, { token: people.merchant.token })
  report.check('pending applications that the merchant sees', items.length, 2)
  return { first, second }
}

async function apply(demo: Demo, creator: Person, offerId: string): Promise<Application> {
  const { token } = creator
  return demo.client
    .call('POST', `/offers/${offerId}/applications`, application, {
      token,
      body: { message: 'My followers ask for lawn every summer.' },
    })
    .catch(async (error: unknown) => {
      if (!(error instanceof Refused) || error.code !== 'already_applied') throw error
      const { items } = await demo.client.call('GET', '/applications', applicationPage, { token })
      const own = items.find((item) => item.offer_id === offerId)
      if (!own) throw error
      return own
    })
}

/** Answers the slug of the link that the approval made. */
export async function decideApplications(
  demo: Demo,
  report: StepReport,
  merchant: Person,
  { first, second }: Applications,
): Promise<string> {
  const decide = (id: string, body: { decision: string; reason?: string; coupon_code?: string }) =>
    demo.client.call('PATCH', `/applications/${id}`, application, { token: merchant.token, body })
  const approved = await decide(first.id, { decision: 'approve', coupon_code: COUPON_CODE })
  const rejected = await decide(second.id, { decision: 'reject', reason: 'We look for fashion channels.' })
  const rate = approved.locked_commission_rate
  report.row(
    approved.creator.display_name,
    approved.status,
    `rate locked at ${rate} %, coupon code ${COUPON_CODE}`,
  )
  report.row(rejected.creator.display_name, rejected.status, rejected.decision_reason ?? '')
  report.check('decision on the first application', approved.status, 'approved')
  report.check('decision on the second application', rejected.status, 'rejected')
  report.check('locked rate', rate ?? 'none', OFFER.commission_rate)
  report.check('link of the rejected application', rejected.affiliate_link?.slug ?? 'none', 'none')
  if (!approved.affiliate_link) throw new Error('the approval made no affiliate link')
  return approved.affiliate_link.slug
}

export async function resolveLink(
  demo: Demo,
  report: StepReport,
  slug: string,
  creator: Person,
): Promise<void> {
  const link = await demo.client.call('GET', `/affiliate-links/${slug}`, resolvedLink)
  report.row('link', link.url)
  report.row('belongs to', `${link.creator.display_name} and "${link.offer.title}"`)
  report.check('creator of the link', link.creator.id, creator.id)
  report.check('link is active', String(link.active), 'true')
}

/** A visit that was redirected to the shop. */
export interface Visit {
  clickId: string
  /** Epoch ms. */
  at: number
}

const BROWSER =
  'Mozilla/5.0 (Linux; Android 14; SM-A155F) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36'

/** As many as there are accepted orders: a link that sells more often than it is clicked is flagged. */
const VISITORS = 4

/** Follows the link as several visitors; each order of the story comes from one of these visits. */
export async function followLink(demo: Demo, report: StepReport, slug: string): Promise<Visit[]> {
  const visits: Visit[] = []
  while (visits.length < VISITORS) visits.push(await visit(demo, report, slug))
  return visits
}

async function visit(demo: Demo, report: StepReport, slug: string): Promise<Visit> {
  const answer = await demo.client.send({
    method: 'GET',
    url: `/go/${slug}`,
    headers: { 'user-agent': BROWSER },
  })
  if (answer.status !== 302) throw refusedBy(`GET /go/${slug}`, answer)
  const location = String(answer.headers.location)
  const target = new URL(location)
  report.row(String(answer.status), location)
  const clickId = target.searchParams.get('aff_ref') ?? 'none'
  target.searchParams.delete('aff_ref')
  report.check('redirect target without its reference', target.href, OFFER.product_url)
  return { clickId, at: Date.now() }
}
