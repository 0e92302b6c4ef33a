import type { App } from '../../../server/app.ts'
import type { CheckedStore, StoreFinding } from '../../../server/stores/store-check.rule.ts'
import type { StoreRow } from '../../../server/stores/stores.service.ts'
import { Failure } from '../../failures.ts'
import { nameOf, type Person, peopleOf } from '../../people.ts'
import type { Output } from '../../terminal/output.ts'

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
      last_refusal: claim.last_refusal,
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
