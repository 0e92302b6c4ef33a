import { OPERATOR } from '../../server/flags/audit.service.ts'
import { NIL_ID } from '../../server/platform/ids.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { rejectionsOf } from '../../server/sales/sales.service.ts'
import { countedUnclaimed } from '../../server/stores/refused-deliveries.service.ts'
import { allowClaim, claimsInUse, releaseClaim } from '../../server/stores/remove-store.service.ts'
import { showStores } from '../../server/stores/store-activity.service.ts'
import { type CheckedStore, checkStore, type StoreFinding } from '../../server/stores/store-check.rule.ts'
import { listStores, refusedStores, type StoreRow } from '../../server/stores/stores.service.ts'
import { findUser } from '../../server/users/users.service.ts'
import { DAY_MS } from '../../shared/durations.ts'
import type { Store } from '../../shared/schemas/stores.ts'
import type { PageOptions, ReasonOption } from '../command.ts'
import { confirm, reads, writes } from '../context.ts'
import { Failure } from '../failures.ts'
import { nameOf, type Person, peopleOf, personOf, userIdOf } from '../lists.ts'
import { type Output, wireTime } from '../terminal/output.ts'
import { type CompareOptions, compareExport } from './compare-export.ts'

export const list = reads(async ({ platform, out }, options: PageOptions) => {
  const merchantId = await userIdOf(platform, options.merchant)
  const { items, next_cursor } = await listStores(platform, merchantId, options)
  const person = await peopleOf(platform, items, (store) => store.merchant_id)
  const shown = await showStores(platform, items)
  const stores = items.map((row, index) => ({ row, shown: shown[index] }))
  out.showPage(
    { items: stores, next_cursor },
    {
      columns: [
        { title: 'Domain', flexible: true, least: 30, cell: ({ row }) => row.shop_domain },
        { title: 'Status', cell: ({ row, shown }) => stateText(row, shown?.status, out) },
        { title: 'Merchant', flexible: true, cell: ({ row }) => nameOf(person(row.merchant_id)) },
        { title: 'Id', cell: ({ row }) => row.id },
        out.moment('Since', ({ row }) => row.created_at),
      ],
      none: 'No stores.',
      wire: ({ row, shown }) => ({ ...shown, ...wireStore(row, person(row.merchant_id)) }),
    },
  )
})

function stateText(store: StoreRow, status: string | undefined, out: Output): string {
  if (store.released_at !== null) return `released ${out.shortTime(store.released_at)}`
  return store.removed_at === null ? (status ?? '') : `removed ${out.shortTime(store.removed_at)}`
}

function wireStore(store: StoreRow, merchant: Person) {
  return {
    id: store.id,
    merchant,
    platform: 'shopify',
    shop_domain: store.shop_domain,
    created_at: wireTime(store.created_at),
    removed_at: wireTime(store.removed_at),
    released_at: wireTime(store.released_at),
  }
}

export const check = reads(
  async ({ platform, out }, domain: string | undefined, options: { merchant?: string }) => {
    if (domain === undefined) return checkAllStores(platform, out)
    const claims = await claimsOf(platform, domain, options.merchant)
    await checkStores(platform, out, claims, (await claimsInUse(platform, domain)).length)
  },
)

/** Shows for each claim on a domain what arrived, what was refused and what to do. Throws if something must be done. */
async function checkStores(
  platform: Platform,
  out: Output,
  claims: readonly StoreRow[],
  domainClaims: number,
): Promise<void> {
  const person = await peopleOf(platform, claims, (claim) => claim.merchant_id)
  const since = platform.clock.now() - 30 * DAY_MS
  const shown = await showStores(platform, claims)
  const stores: CheckedClaim[] = []
  for (const [index, claim] of claims.entries()) {
    const store = {
      ...(shown[index] as Store),
      rejected_30d: await rejectionsOf(platform.database.reader, claim, since),
      claims: domainClaims,
    }
    const findings = checkStore(store, (time) => out.time(Date.parse(time)))
    stores.push({ merchant: person(claim.merchant_id), ...store, findings })
  }
  const toDo = stores.flatMap(({ findings }) => findings).filter(({ state }) => state === 'todo').length
  const domain = claims[0]?.shop_domain ?? ''
  out.show({ shop_domain: domain, ok: toDo === 0, stores }, () =>
    stores.flatMap((store) => checkLines(store, out)),
  )
  if (toDo > 0) throw new Failure(`${toDo} to do for ${domain}, marked with ✗.`)
}

type CheckedClaim = CheckedStore & { merchant: Person; findings: StoreFinding[] }

const PAGE = 500

/** Lists the stores whose deliveries are refused, and the domains that deliveries name and no merchant claims. Throws if there are such stores. */
async function checkAllStores(platform: Platform, out: Output): Promise<void> {
  const stores: { row: StoreRow; store: Store }[] = []
  for (let after: string | undefined = NIL_ID; after !== undefined; ) {
    const rows: StoreRow[] = await refusedStores(platform.database.reader, after, PAGE)
    const shown = await showStores(platform, rows)
    for (const [index, row] of rows.entries()) {
      const store = shown[index]
      if (store?.status === 'rejecting') stores.push({ row, store })
    }
    after = rows.length < PAGE ? undefined : rows.at(-1)?.id
  }
  const domains = await countedUnclaimed(platform)
  const person = await peopleOf(platform, stores, ({ row }) => row.merchant_id)
  const rejecting = stores.map(({ row, store }) => ({ merchant: person(row.merchant_id), ...store }))
  const unclaimed = domains.map(({ shop_domain, deliveries, first_at, last_at }) => {
    return { shop_domain, deliveries, first_at: wireTime(first_at), last_at: wireTime(last_at) }
  })
  out.show({ rejecting, unclaimed }, () => [
    ...(stores.length === 0
      ? ['No store has its deliveries refused.']
      : [
          out.heading('Stores whose deliveries are refused'),
          ...out.table(stores, [
            { title: 'Domain', flexible: true, cell: ({ store }) => store.shop_domain },
            { title: 'Merchant', flexible: true, cell: ({ row }) => nameOf(person(row.merchant_id)) },
            { title: 'Reason', cell: ({ store }) => store.last_refusal?.reason ?? '' },
            out.moment('Last refused', ({ row }) => row.last_refused_at ?? 0),
          ]),
        ]),
    ...(domains.length === 0
      ? ['No delivery named a domain that no merchant claims.']
      : [
          out.heading(
            'Domains that deliveries name and no merchant claims: mistyped ones, or anything that someone sent',
          ),
          ...out.table(domains, [
            { title: 'Domain', flexible: true, cell: (row) => row.shop_domain },
            { title: 'Deliveries', right: true, cell: (row) => row.deliveries },
            out.moment('Last', (row) => row.last_at),
          ]),
        ]),
  ])
  const [first] = rejecting
  if (first) throw new Failure(`To see what to do: affiliate stores check ${first.shop_domain}`)
}

const MARKS = { ok: ['green', '✓'], note: ['dim', '·'], todo: ['red', '✗'] } as const

function checkLines({ merchant, shop_domain, status, findings }: CheckedClaim, out: Output): string[] {
  return [
    `${out.heading(shop_domain)} of ${nameOf(merchant)}: ${status}`,
    ...findings.flatMap(({ state, detail, next }) => {
      const [style, mark] = MARKS[state]
      const step = next === null ? [] : [`    ${out.style('bold', '→')} ${next}`]
      return [`  ${out.style(style, mark)} ${detail}`, ...step]
    }),
  ]
}

export const compare = reads(({ platform, out }, domain: string, file: string, options: CompareOptions) =>
  compareExport(platform, out, domain, file, options),
)

type ReleaseOptions = ReasonOption & { merchant?: string }

export const release = writes(async (context, domain: string, options: ReleaseOptions) => {
  const { platform, out } = context
  const { merchant, reason = null } = options
  const { shop_domain, merchant_id: merchantId } = await claimToRelease(platform, domain, merchant)
  const person = await personOf(platform, merchantId)
  await confirm(
    context,
    `Release ${shop_domain} from ${nameOf(person)}? Its webhook secrets are deleted; its sales stay. Live offers are paused if it is their only store.`,
  )
  const request = { domain: shop_domain, merchantId, actor: OPERATOR, reason }
  const { store, offersPaused } = await releaseClaim(platform, request)
  out.show({ ...wireStore(store, person), offers_paused: offersPaused }, () => [
    `Released ${store.shop_domain} from ${nameOf(person)}.`,
    ...(offersPaused > 0 ? [`Live offers paused, because no store is left: ${offersPaused}.`] : []),
    `To let them connect it again: affiliate stores allow ${store.shop_domain} --merchant ${nameOf(person)}`,
  ])
})

/** The claims in use on a domain, at least one; of one merchant if given. */
async function claimsOf(platform: Platform, domain: string, merchant?: string): Promise<StoreRow[]> {
  const claims = await claimsInUse(platform, domain)
  const merchantId = await userIdOf(platform, merchant)
  const meant = claims.filter((claim) => merchantId === null || claim.merchant_id === merchantId)
  if (meant.length > 0) return meant
  const whose = merchant === undefined ? '' : ` of ${merchant}`
  const [refused] = claims.length === 0 ? await countedUnclaimed(platform, domain) : []
  const count = refused === undefined ? '' : ` Deliveries for it that were refused: ${refused.deliveries}.`
  throw new Failure(`No store in use${whose} has the domain ${domain}.${count}`, { code: 'not_found' })
}

async function claimToRelease(platform: Platform, domain: string, merchant?: string): Promise<StoreRow> {
  const meant = await claimsOf(platform, domain, merchant)
  const [claim] = meant
  if (claim && meant.length === 1) return claim
  const person = await peopleOf(platform, meant, (one) => one.merchant_id)
  throw new Failure(`${meant.length} merchants claim ${claim?.shop_domain}. Name one with --merchant.`, {
    extra: { candidates: meant.map((one) => wireStore(one, person(one.merchant_id))) },
    lines: meant.map((one) => `  ${one.id}  ${nameOf(person(one.merchant_id))}`),
  })
}

type AllowOptions = ReasonOption & { merchant: string }

export const allow = writes(async ({ platform, out }, domain: string, options: AllowOptions) => {
  const { merchant, reason = null } = options
  const { id: merchantId } = await findUser(platform, merchant)
  const store = await allowClaim(platform, { domain, merchantId, actor: OPERATOR, reason })
  const person = await personOf(platform, merchantId)
  out.show(wireStore(store, person), () => [`${nameOf(person)} can connect ${store.shop_domain} again.`])
})
