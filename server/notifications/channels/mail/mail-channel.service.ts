import type { Application } from '../../../../shared/schemas/applications.ts'
import type { BillingCycleWire } from '../../../../shared/schemas/billing.ts'
import type { PayoutWire } from '../../../../shared/schemas/payouts.ts'
import type { Store } from '../../../../shared/schemas/stores.ts'
import type { UserWire } from '../../../../shared/schemas/users.ts'
import { offerTitles } from '../../../offers/offers.service.ts'
import { mailMode } from '../../../platform/config.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Channel, OutboxEventRow } from '../../outbox.service.ts'
import { type NewMail, sendMail } from './mail.service.ts'
import type { MailContent } from './mail-facts.ts'

/**
 * Writes mails about events. Not about sales, which come in large numbers: their parties hear of the first one only. Not about closed
 * cycles, whose mail waits for the link to pay by.
 */
export const mailChannel: Channel = {
  async enqueue(platform, tx, events) {
    if (mailMode(platform.config) === 'off') return
    for (const event of events) {
      const content = await contentOf(tx, event)
      if (!content) continue
      await sendMail(platform, tx, { ...content, userId: event.account_id, about: event.id } as NewMail)
    }
  },
}

async function contentOf(tx: Tx, event: OutboxEventRow): Promise<MailContent | null> {
  const data: unknown = JSON.parse(event.data)
  switch (event.type) {
    case 'application.created': {
      const { offer_id, creator } = data as Application
      return {
        kind: event.type,
        facts: { offer: await titleOf(tx, offer_id), creator: creator.display_name },
      }
    }
    case 'application.decided': {
      const { offer_id, status, affiliate_link, decision_reason: reason } = data as Application
      const decision = status === 'approved' ? 'approved' : 'rejected'
      const link = affiliate_link?.url ?? null
      return { kind: event.type, facts: { offer: await titleOf(tx, offer_id), decision, link, reason } }
    }
    case 'billing_cycle.overdue': {
      const { amount_due, closed_at, payment_url } = data as BillingCycleWire
      const closed = closed_at === null ? event.created_at : Date.parse(closed_at)
      return { kind: event.type, facts: { amount_due, closed_at: closed, payment_url } }
    }
    case 'store.silent': {
      const { shop_domain, last_event_at } = data as Store
      const last = last_event_at === null ? null : Date.parse(last_event_at)
      return { kind: event.type, facts: { shop_domain, last_event_at: last } }
    }
    case 'store.rejecting': {
      const { shop_domain, last_refusal: refusal } = data as Store
      if (refusal === null) return null
      return { kind: event.type, facts: { shop_domain, at: Date.parse(refusal.at), reason: refusal.reason } }
    }
    case 'payout.paid':
      return { kind: event.type, facts: { amount: (data as PayoutWire).amount } }
    case 'payout.failed': {
      const { amount, failure_reason: reason = null } = data as PayoutWire
      return { kind: event.type, facts: { amount, reason } }
    }
    case 'payout_destination.changed': {
      const { payout_destination: current, upcoming_payout_destination: upcoming } = data as UserWire
      const iban_last4 = (upcoming ?? current)?.iban_last4 ?? ''
      const effective = upcoming ? Date.parse(upcoming.effective_at) : event.created_at
      const facts = { at: event.created_at, iban_last4, effective_at: effective }
      return { kind: 'payout_destination_changed', facts }
    }
    case 'webhook_endpoint.disabled': {
      const { url, disabled_reason: reason } = data as { url: string; disabled_reason: string }
      return { kind: 'webhook_endpoint_disabled', facts: { at: event.created_at, url, reason } }
    }
    default:
      return null
  }
}

async function titleOf(tx: Tx, offerId: string): Promise<string> {
  return (await offerTitles(tx, [offerId])).get(offerId) ?? ''
}
