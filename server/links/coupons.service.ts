import { DAY_MS } from '../../shared/durations.ts'
import { recordAudit } from '../flags/audit.service.ts'
import type { OfferStatus } from '../offers/offer-status.rule.ts'
import { offerStatusesAt } from '../offers/offers.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { insertRow, updateRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { checkQuota, lockAccount } from '../users/users.service.ts'
import {
  type CouponRow,
  countCodesSince,
  couponsInForce,
  historyOfCodes,
  lastOfCode,
} from './coupons.store.ts'
import { type LinkRecord, type LinkTerms, linkRecordOf, linkTerms, lockLink } from './links.service.ts'

export { couponsOfLink as couponHistory } from './coupons.store.ts'

export const COUPON_QUOTA = {
  most: 200,
  detail: 'At most 200 new coupon codes within 24 hours. Try again later.',
}

export const LINK_ENDED = 'This link has ended and gets no coupon code.'

interface CouponChange {
  /** The link's merchant; `OPERATOR` may change every link. */
  actor: string
  /** Upper case; `null` takes the link's code away. */
  code: string | null
}

/**
 * Gives a link a coupon code in place of the one that it has, or takes it away. The code that it has already changes nothing. Refuses
 * with `not_found`, `conflict` (the link has ended), `coupon_taken` (another link of the merchant has the code) and `quota_exceeded`.
 */
export function setCoupon(
  platform: Platform,
  { slug, ...change }: CouponChange & { slug: string },
): Promise<LinkRecord> {
  return platform.database.transaction(async (tx) => {
    const link = await lockLink(tx, slug, change.actor)
    if (link.ended_at !== null && change.code !== null) throw new Refusal('conflict', LINK_ENDED)
    await changeCoupon(platform, tx, link, change)
    return linkRecordOf(link)
  })
}

/** `setCoupon` for a link that the caller has loaded, in the caller's transaction. */
export async function changeCoupon(
  platform: Platform,
  tx: Tx,
  link: Pick<LinkRecord, 'id' | 'merchant_id'>,
  { actor, code }: CouponChange,
): Promise<void> {
  const now = platform.clock.now()
  // So that two changes of one merchant run one after the other.
  await lockAccount(tx, link.merchant_id)
  const [former] = await couponsInForce(tx, [link.id])
  if ((former?.code ?? null) === code) return
  const last = code === null ? undefined : await lastOfCode(tx, link.merchant_id, code)
  if (last && last.ends_at === null) {
    throw new Refusal('coupon_taken', `Another of the merchant's links has the coupon code ${code}.`)
  }
  if (code !== null) {
    const count = () => countCodesSince(tx, link.merchant_id, now - DAY_MS)
    await checkQuota(tx, link.merchant_id, { ...COUPON_QUOTA, count })
  }
  // Never before an earlier end or start, also when the clock was set back: no two rows of a code may overlap.
  const at = Math.max(now, former?.starts_at ?? 0, last?.ends_at ?? 0)
  if (former) await updateRows(tx, 'link_coupons', { id: former.id }, { ends_at: at })
  if (code !== null) {
    const row = { link_id: link.id, merchant_id: link.merchant_id, code, starts_at: at, ends_at: null }
    await insertRow(tx, 'link_coupons', { id: platform.ids.next(), ...row })
  }
  await recordAudit(platform, tx, {
    actor,
    action: 'link.coupon',
    subjectType: 'affiliate_link',
    subjectId: link.id,
    before: { coupon_code: former?.code ?? null },
    after: { coupon_code: code },
  })
}

/** The coupon codes in force by link id. Links without one are missing. */
export async function couponCodesOf(db: Queries | Tx, linkIds: readonly string[]) {
  const rows = await couponsInForce(db, linkIds)
  return new Map(rows.map((row) => [row.link_id, row.code]))
}

/** An order of a merchant's store with its discount codes, upper case. */
export interface CodedOrder {
  merchantId: string
  codes: readonly string[]
  /** The last moment at which it may have been created, in epoch ms: stores write whole seconds. */
  createdAt: number
}

/** A discount code that belonged to a link; times in epoch ms. */
interface OrderCoupon {
  code: string
  starts_at: number
  /** Exclusive; `null` while in force. */
  ends_at: number | null
  /** The status of the link's offer when the order was created. */
  offer_status: OfferStatus | null
  link: LinkTerms
}

/**
 * For each order those of its codes that are, or ever were, on a link of its merchant, in the order's sequence: with the link that had
 * the code when the order was created, or else the one that had it last before, or first after. Throws `TamperedRow` for a row that was
 * changed, so that no order is decided by it, and `UnknownKeyError`.
 */
export async function couponsOfOrders(
  db: Queries | Tx,
  keys: AppKeys,
  orders: readonly CodedOrder[],
): Promise<OrderCoupon[][]> {
  const wanted = new Map(
    orders.flatMap(({ merchantId, codes }) =>
      codes.map((code) => [keyOf(merchantId, code), { merchant_id: merchantId, code }] as const),
    ),
  )
  const history = Map.groupBy(await historyOfCodes(db, keys, [...wanted.values()]), (row) =>
    keyOf(row.merchant_id, row.code),
  )
  if (history.size === 0) return orders.map(() => [])
  const found = orders.map(({ merchantId, codes, createdAt }) =>
    codes.flatMap((code) => rowAt(history.get(keyOf(merchantId, code)) ?? [], createdAt) ?? []),
  )
  const links = await linkTerms(
    db,
    keys,
    found.flat().map((row) => row.link_id),
  )
  const asked = found.flatMap((rows, index) =>
    rows.map((row) => ({
      offer_id: links.get(row.link_id)?.offer_id ?? '',
      at: orders[index]?.createdAt ?? 0,
    })),
  )
  const statuses = (await offerStatusesAt(db, keys, asked)).values()
  return found.map((rows) =>
    rows.flatMap(({ code, starts_at, ends_at, link_id }) => {
      const offer_status = statuses.next().value ?? null
      const link = links.get(link_id)
      return link ? [{ code, starts_at, ends_at, offer_status, link }] : []
    }),
  )
}

function keyOf(merchantId: string, code: string): string {
  return `${merchantId} ${code}`
}

/** Of a code's rows, oldest first, the last that had begun at `at`, or else the first. */
function rowAt(rows: readonly CouponRow[], at: number): CouponRow | undefined {
  return rows.findLast((row) => row.starts_at <= at) ?? rows[0]
}
