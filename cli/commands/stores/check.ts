import type { App } from '../../../server/app.ts'
import { NIL_ID } from '../../../server/platform/ids.ts'
import type { CheckedStore, StoreFinding } from '../../../server/stores/store-check.rule.ts'
import type { StoreRow } from '../../../server/stores/stores.service.ts'
import type { Store } from '../../../shared/schemas/stores.ts'
import { Failure } from '../../failures.ts'
import { nameOf, type Person, peopleOf } from '../../people.ts'
import { type Output, wireTime } from '../../terminal/output.ts'

interface Check {
  merchant: Person
  store: CheckedStore
  findings: StoreFinding[]
}

/** Shows for each claim on a domain what arrived, what was refused and what to do. Throws if something must be done. */
export async function checkStores(
  app: App,
  out: Output,
  claims: readonly StoreRow[],
  domainClaims: number,
): Promise<void> {
  const { checkStore } = await import('../../../server/stores/store-check.rule.ts')
  const { showStores } = await import('../../../server/stores/store-activity.service.ts')
  const { rejectionsOf } = await import('../../../server/sales/sales.service.ts')
  const person = await peopleOf(
    app,
    claims.map((claim) => claim.merchant_id),
  )
  const since = app.platform.clock.now() - 30 * 86_400_000
  const stores = await showStores(app.platform, claims)
  const checks: Check[] = []
  for (const [index, claim] of claims.entries()) {
    const store = {
      ...(stores[index] as (typeof stores)[number]),
      rejected_30d: await rejectionsOf(app.platform, claim, since),
      claims: domainClaims,
    }
    const findings = checkStore(store, (time) => out.time(Date.parse(time)))
    checks.push({ merchant: person(claim.merchant_id), store, findings })
  }
  const toDo = checks.flatMap(({ findings }) => findings).filter(({ state }) => state === 'todo').length
  const domain = claims[0]?.shop_domain ?? ''
  out.show(
    {
      shop_domain: domain,
      ok: toDo === 0,
      stores: checks.map(({ merchant, store, findings }) => ({ merchant, ...store, findings })),
    },
    () => checks.flatMap((check) => lines(check, out)),
  )
  if (toDo > 0) throw new Failure(`${toDo} to do for ${domain}, marked with ✗.`)
}

const PAGE = 500

/** Lists the stores whose deliveries are refused, and the domains that deliveries name and no merchant claims. Throws if there are such stores. */
export async function checkAllStores(app: App, out: Output): Promise<void> {
  const { refusedStoresAfter } = await import('../../../server/stores/stores.service.ts')
  const { showStores } = await import('../../../server/stores/store-activity.service.ts')
  const { countedUnclaimed } = await import('../../../server/stores/refused-deliveries.service.ts')
  const { reader } = app.platform.database
  const rejecting: { row: StoreRow; store: Store }[] = []
  for (let after: string | undefined = NIL_ID; after !== undefined; ) {
    const rows: StoreRow[] = await refusedStoresAfter(reader, after, PAGE)
    const shown = await showStores(app.platform, rows)
    for (const [index, row] of rows.entries()) {
      const store = shown[index]
      if (store?.status === 'rejecting') rejecting.push({ row, store })
    }
    after = rows.length < PAGE ? undefined : rows.at(-1)?.id
  }
  const unclaimed = await countedUnclaimed(app.platform)
  const person = await peopleOf(
    app,
    rejecting.map(({ row }) => row.merchant_id),
  )
  out.show(
    {
      rejecting: rejecting.map(({ row, store }) => ({ merchant: person(row.merchant_id), ...store })),
      unclaimed: unclaimed.map(({ shop_domain, deliveries, first_at, last_at }) => ({
        shop_domain,
        deliveries,
        first_at: wireTime(first_at),
        last_at: wireTime(last_at),
      })),
    },
    () => [
      ...(rejecting.length === 0
        ? ['No store has its deliveries refused.']
        : [
            out.heading('Stores whose deliveries are refused'),
            ...out.table(
              [
                { title: 'Domain', flexible: true },
                { title: 'Merchant', flexible: true },
                { title: 'Last refused' },
                { title: 'Reason' },
              ],
              rejecting.map(({ row, store }) => [
                store.shop_domain,
                nameOf(person(row.merchant_id)),
                out.shortTime(row.last_refused_at ?? 0),
                store.last_refusal?.reason ?? '',
              ]),
            ),
          ]),
      ...(unclaimed.length === 0
        ? ['No delivery named a domain that no merchant claims.']
        : [
            out.heading(
              'Domains that deliveries name and no merchant claims: mistyped ones, or anything that someone sent',
            ),
            ...out.table(
              [{ title: 'Domain', flexible: true }, { title: 'Deliveries', right: true }, { title: 'Last' }],
              unclaimed.map((row) => [row.shop_domain, String(row.deliveries), out.shortTime(row.last_at)]),
            ),
          ]),
    ],
  )
  if (rejecting.length > 0) {
    const [one] = rejecting
    throw new Failure(`To see what to do: affiliate stores check ${one?.store.shop_domain}`)
  }
}

const MARKS = { ok: ['green', '✓'], note: ['dim', '·'], todo: ['red', '✗'] } as const

function lines({ merchant, store, findings }: Check, out: Output): string[] {
  return [
    `${out.heading(store.shop_domain)} of ${nameOf(merchant)}: ${store.status}`,
    ...findings.flatMap(({ state, detail, next }) => {
      const [style, mark] = MARKS[state]
      const step = next === null ? [] : [`    ${out.style('bold', '→')} ${next}`]
      return [`  ${out.style(style, mark)} ${detail}`, ...step]
    }),
  ]
}
