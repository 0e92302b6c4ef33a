import type { Inputs, Outputs } from '../../index.ts'
import { client, session, useQuery } from '../client.ts'
import { Form, field, optionsOf } from '../parts/form.tsx'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { Answered, Card, Page } from '../parts/page.tsx'
import { Facts, Theirs } from '../parts/values.tsx'
import { Link } from '../router.tsx'
import { key, t } from '../text.ts'
import { VisitorLinks } from './log-in.tsx'

type Offer = Outputs['offers']['get']
type Search = NonNullable<Inputs['offers']['list']> & { paid_rate_90d?: string }

/** A page of the catalogue. The service cannot search by paid rate, so pages are read until one has an offer that fits. */
async function loadOffers(search: Search): Promise<Outputs['offers']['list']> {
  const { paid_rate_90d: least = 0, ...input } = search
  const page = await client.offers.list.query(input)
  const items = page.items.filter(({ paid_rate_90d }) => (paid_rate_90d ?? 0) >= Number(least))
  if (items.length > 0 || page.next_cursor === null) return { ...page, items }
  return loadOffers({ ...search, cursor: page.next_cursor })
}

/** The public catalogue. */
export function Offers() {
  const { data } = useQuery('categories', () => client.offers.categories.query())
  const inUse = (name: 'category' | 'niche') => [...new Set(data?.items.map((item) => item[name]))]
  const shares = ['50', '70', '90'].map((share) => [share, t('From {share}%', { share })] as const)
  const list = useFiltered<Offer>(
    'offers',
    [
      'q?',
      choice('category', inUse('category')),
      choice('niche', inUse('niche')),
      'commission_min?',
      field('paid_rate_90d?', { type: 'select', options: [['', t('All')], ...shares] }),
      field('sort?', { type: 'select', options: optionsOf(['newest', 'commission_desc']) }),
    ],
    loadOffers,
  )
  const cell = ({ id, title, merchant }: Offer) => (
    <div>
      <Theirs to={`/offers/${id}`}>{title}</Theirs>
      <p class="quiet">
        <Theirs>{merchant.display_name}</Theirs>
      </p>
    </div>
  )
  return (
    <ListPage
      title={t('Offers')}
      lead={t('What stores pay creators for sales.')}
      children={session.use() === null && <Welcome />}
      list={list}
      empty={[t('No offers yet.'), t('They appear here as soon as merchants put them live.')]}
      columns={[{ head: t('Offer'), cell }, 'category', 'niche', 'paid_rate_90d', 'commission_rate']}
    />
  )
}

const Welcome = () => (
  <Card>
    <p>
      {t(
        'Creators share links to products of Pakistan’s online stores, and earn a commission on each sale that follows. Merchants offer the commission, choose the creators, and pay once the order is paid.',
      )}
    </p>
    <VisitorLinks />
  </Card>
)

const TERMS = ['commission_rate', 'paid_rate_90d', 'attribution_window_days']

export function OfferPage({ params: { id = '' } }: { params: Record<string, string> }) {
  const query = useQuery(`offer ${id}`, () => client.offers.get.query({ id }))
  const role = session.use()?.role
  return (
    <Page title={query.data?.title ?? t('Offer')} lead={<Theirs>{query.data?.merchant.display_name}</Theirs>}>
      <Answered of={query}>
        {({ description, ...offer }) => (
          <Card>
            {description && <p class="theirs">{description}</p>}
            <Facts of={offer} items={[...TERMS, 'category', 'niche', 'product_url', 'image_url']} />
          </Card>
        )}
      </Answered>
      {role === 'creator' && <Apply id={id} />}
      {role === undefined && (
        <Link to={`/register?back=/offers/${encodeURIComponent(id)}`} class="button main">
          {t('Register to promote it')}
        </Link>
      )}
    </Page>
  )
}

const STANDING = {
  pending: key('You have applied. The merchant decides.'),
  approved: key('You promote this offer.'),
  rejected: key('The merchant rejected your application. You may apply again.'),
  withdrawn: key('You withdrew your application. You may apply again.'),
}

function Apply({ id }: { id: string }) {
  const mine = useQuery('applications', () => client.applications.list.query({ limit: 100 }))
  const apply = (input: object) => client.applications.apply.mutate({ ...input, id }).then(mine.reload)
  return (
    <Card title={t('Promote this offer')}>
      <Answered of={mine}>
        {({ items }) => {
          const { status = 'none', decision_reason } = items.find(({ offer_id }) => offer_id === id) ?? {}
          return (
            <>
              {status !== 'none' && <p>{t(STANDING[status])}</p>}
              {decision_reason && <Theirs>{decision_reason}</Theirs>}
              {status === 'approved' && <Link to={`/links?offer_id=${id}`}>{t('Your link')}</Link>}
              {status === 'pending' && <Link to="/applications">{t('Your applications')}</Link>}
              {status !== 'approved' && status !== 'pending' && (
                <Form fields={['message?', 'promotion_url?']} submit={t('Apply')} onSubmit={apply} />
              )}
            </>
          )
        }}
      </Answered>
    </Card>
  )
}
