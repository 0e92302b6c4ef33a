import { CURRENCY, formatMoney, type Paisa } from '../../shared/money.ts'
import type { CreditRequest } from '../../shared/schemas/admin.ts'
import { closeFlag, type FlagRow, findFlag, findFlags, resolveFlag } from '../flags/flags.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { creditOfRequest } from './credits.store.ts'

/*
 * A request for a credit on a sale is a flag of this kind. A credit that names the flag grants it; a flag that is resolved without one
 * is declined.
 */
const KIND = 'credit_request'

interface Evidence {
  merchant_id: string
  amount: string
  reason: string
}

const evidenceOf = (flag: FlagRow): Evidence => JSON.parse(flag.evidence)

/** The last request about a sale; `null` without one. */
export async function creditRequestAbout(db: Queries, saleId: string): Promise<CreditRequest | null> {
  const about = { kind: KIND, subjectType: 'sale', subjectId: saleId }
  const [flag] = await findFlags(db, about, { limit: 1 })
  return flag ? wireRequest(db, flag) : null
}

async function wireRequest(db: Queries, flag: FlagRow): Promise<CreditRequest> {
  const { amount, reason } = evidenceOf(flag)
  const credit = await creditOfRequest(db, flag.id)
  return {
    flag_id: flag.id,
    sale_id: flag.subject_id,
    amount,
    currency: CURRENCY,
    reason,
    status: flag.status === 'open' ? 'pending' : credit ? 'granted' : 'declined',
    granted_amount: credit ? formatMoney(credit.amount) : null,
    created_at: isoTime(flag.created_at),
    decided_at: flag.resolved_at === null ? null : isoTime(flag.resolved_at),
  }
}

/**
 * Resolves the open request of a merchant that a credit answers, and returns its id: the one of `requestId`, or else the only one of
 * this amount. Refuses with `not_found` when `requestId` is not an open request of the merchant.
 */
export async function settleRequest(
  platform: Platform,
  tx: Tx,
  {
    merchantId,
    amount,
    requestId,
    reference,
  }: {
    merchantId: string
    amount: Paisa
    requestId: string | null
    reference: string
  },
): Promise<string | null> {
  const open = await findFlags(tx, { kind: KIND, status: 'open', merchantId })
  const matching = open.filter((flag) =>
    requestId === null ? evidenceOf(flag).amount === formatMoney(amount) : flag.id === requestId,
  )
  const [flag] = matching
  if (requestId !== null && !flag) {
    throw new Refusal('not_found', `${requestId} is not an open credit request of this merchant.`)
  }
  if (!flag || matching.length > 1) return null
  const about = { kind: KIND, subjectType: 'sale', subjectId: flag.subject_id } as const
  return (await closeFlag(platform, tx, about, `Granted as credit ${reference}.`)) ? flag.id : null
}

/** Tells the merchant what became of a request. */
export async function publishDecision(platform: Platform, tx: Tx, flagId: string): Promise<void> {
  const flag = await findFlag(tx, flagId)
  if (flag?.kind !== KIND) return
  const data = await wireRequest(tx, flag)
  const accountId = evidenceOf(flag).merchant_id
  await publishEvents(platform, tx, [{ type: 'credit_request.decided', accountId, subjectId: flag.id, data }])
}

/** As `resolveFlag`; a credit request is thereby declined, and its merchant is notified. */
export function decideFlag(
  platform: Platform,
  decision: Parameters<typeof resolveFlag>[1],
): Promise<FlagRow> {
  return resolveFlag(platform, decision, (tx) => publishDecision(platform, tx, decision.flagId))
}
