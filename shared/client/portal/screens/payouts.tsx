import type { Outputs } from '../../index.ts'
import { client, session, useFigures, useLive, useQuery } from '../client.ts'
import { Ask } from '../parts/ask.tsx'
import { choice, ListPage, useFiltered } from '../parts/list.tsx'
import { Answered, Card } from '../parts/page.tsx'
import { Facts, Figures, Money } from '../parts/values.tsx'
import { key, money, t, when } from '../text.ts'

type Payout = Outputs['payouts']['list']['items'][number]
type Summary = Extract<Outputs['summaries']['get'], { role: 'creator' }>

/** Why the next payout run leaves a creator out. */
const WAITS: Record<NonNullable<Summary['next_payout']['waits_for']>, string> = {
  below_threshold: key('Payouts begin at {threshold}: {missing} more to go.'),
  suspended: key('Your account is suspended.'),
  no_destination: key('Say where payouts go.'),
  destination_broken: key('Your bank account cannot be read. An operator looks at it.'),
  failed_three_times: key('Three payouts failed in a row. An operator looks at it.'),
  failure_not_confirmed: key('It is not certain yet that the last payout failed. An operator looks at it.'),
}

/** A creator's balance and payouts, or the part of payouts that a merchant paid for. */
export function Payouts() {
  const isCreator = session.use()?.role === 'creator'
  const states = choice('state', ['pending', 'submitted', 'paid', 'failed'])
  const list = useFiltered<Payout>('payouts', [states], client.payouts.list.query)
  useLive('payout', ({ payout }) => list.put(payout))
  return (
    <ListPage
      title={t('Payouts')}
      lead={!isCreator && t('What creators got of the billing cycles that you paid.')}
      list={list}
      empty={[t('No payouts yet.'), t('Commission is paid out once merchants have paid for it.')]}
      columns={[
        'created_at',
        { head: t('Amount'), end: true, cell: ({ amount }) => <Money amount={amount} /> },
        'state',
        ...(isCreator ? (['processor_payout_id', 'failure_reason'] as const) : (['creator'] as const)),
        'settled_at',
      ]}
    >
      {isCreator && <Balance />}
      {isCreator && <Destination />}
    </ListPage>
  )
}

function Balance() {
  const query = useQuery('balance', async () => (await client.summaries.get.query()) as Summary)
  useFigures(query.reload)
  return (
    <Answered of={query}>
      {({ next_payout: next, payout_threshold, pending, released, in_transit, paid }) => (
        <>
          <Figures
            items={[
              [t('Earned'), money(pending), t('Merchants have not paid for it yet.')],
              [t('Ready'), money(released), t('The next payout run takes it.')],
              [t('On its way'), money(in_transit), t('The bank has not confirmed it yet.')],
              [t('Paid'), money(paid)],
            ]}
          />
          <p
            class={`notice ${next.waits_for === 'below_threshold' ? 'quiet' : next.waits_for ? 'warn' : 'good'}`}
          >
            {next.waits_for
              ? t(WAITS[next.waits_for], { threshold: money(payout_threshold), missing: money(next.missing) })
              : t('The next payout run pays {amount}.', { amount: money(next.amount) })}
          </p>
        </>
      )}
    </Answered>
  )
}

type NewDestination = { iban: string; account_title: string; current_password?: string }

function Destination() {
  const me = useQuery('me', () => client.users.me.query())
  const save = ({ current_password, ...payout_destination }: NewDestination) =>
    client.users.updateMe.mutate({ payout_destination, current_password }).then(me.reload)
  return (
    <Answered of={me}>
      {({ payout_destination: now, upcoming_payout_destination: next }) => (
        <Card
          title={t('Where payouts go')}
          actions={
            <Ask
              label={now ? t('Replace') : t('Add a bank account')}
              text={now && t('It takes effect after 24 hours, and payouts go to the former one until then.')}
              fields={['iban', 'account_title', now ? 'current_password' : 'current_password?']}
              onSubmit={save}
            />
          }
        >
          {now && <Facts of={now} items={['account_title', 'iban_last4']} />}
          {!now && <p>{t('No bank account yet.')}</p>}
          {next && (
            <p class="notice warn">
              {t('From {time} on: {title}, IBAN ending in {last4}.', {
                ...{ time: when(next.effective_at), title: next.account_title, last4: next.iban_last4 },
              })}
            </p>
          )}
        </Card>
      )}
    </Answered>
  )
}
