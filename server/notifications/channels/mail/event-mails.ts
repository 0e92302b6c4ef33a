import type { MailEvent } from '../../../../shared/events.ts'
import { displayMoney, parseMoney } from '../../../../shared/money.ts'
import type { Application } from '../../../../shared/schemas/applications.ts'
import type { BillingCycleWire } from '../../../../shared/schemas/billing.ts'
import type { PayoutWire } from '../../../../shared/schemas/payouts.ts'
import type { Store } from '../../../../shared/schemas/stores.ts'
import type { OutboxEventRow } from '../../outbox.service.ts'

/** What a mail says, before it is laid out. Text that users wrote is only in `details`, and at the end of `subject`. */
export interface MailText {
  subject: string
  paragraphs: string[]
  /** Labels with their values. */
  details: [label: string, value: string][]
  button: { label: string; url: string } | null
}

export type MailParts = Omit<MailText, 'details' | 'button'> & Partial<MailText>

/** Times (epoch ms) as texts in the time zone of the service. */
export interface TimeTexts {
  day(at: number): string
  time(at: number): string
}

/** Looks up an offer's title. */
type TitleOf = (offerId: string) => Promise<string>

interface EventMail<Data, Facts> {
  /**
   * What the mail keeps of an event's `data`; `null` for no mail. Absent for sales, which come in large numbers, so that their parties hear of
   * the first one only, and for closed cycles, whose mail waits for the link to pay by: their services write these mails.
   */
  factsOf?(data: Data, event: OutboxEventRow, titleOf: TitleOf): Facts | null | Promise<Facts | null>
  text(facts: Facts, times: TimeTexts): MailParts
}

const mail = <Data, Facts>(one: EventMail<Data, Facts>) => one

/** The e-mail about each event. Facts are stored: times are epoch ms, amounts are text such as `1250.00`. */
export const EVENT_MAILS = {
  'application.created': mail({
    factsOf: async ({ offer_id, creator }: Application, _, titleOf) => ({
      offer: await titleOf(offer_id),
      creator: creator.display_name,
    }),
    text: ({ offer, creator }: { offer: string; creator: string }) => ({
      subject: `New application for ${offer}`,
      paragraphs: ['A creator applied to promote one of your offers. Approve or reject the application.'],
      details: [
        ['Offer', offer],
        ['Creator', creator],
      ],
    }),
  }),

  'application.decided': mail({
    async factsOf({ offer_id, status, affiliate_link, decision_reason: reason }: Application, _, titleOf) {
      const decision = status === 'approved' ? 'approved' : 'rejected'
      return {
        offer: await titleOf(offer_id),
        decision,
        link: affiliate_link?.url ?? null,
        reason,
      } as const
    },
    text: (facts: {
      offer: string
      decision: 'approved' | 'rejected'
      link: string | null
      /** What the merchant wrote. */
      reason: string | null
    }) => ({
      subject: `Application ${facts.decision}: ${facts.offer}`,
      paragraphs: [
        facts.decision === 'approved'
          ? 'Your application was approved. Share your affiliate link to earn commission.'
          : 'Your application was rejected. You can apply to other offers, and again to this one.',
      ],
      details: [
        ['Offer', facts.offer],
        ...row('Affiliate link', facts.link),
        ...row('Reason', facts.reason || null),
      ],
    }),
  }),

  'sale.accepted': mail({
    text: (facts: { commission: string; net_amount: string; order_name: string | null }) => ({
      subject: 'Your first sale',
      paragraphs: ['Congratulations: the first sale through an affiliate link was accepted.'],
      details: [
        ...row('Order', facts.order_name),
        ['Net amount', rupees(facts.net_amount)],
        ['Commission', rupees(facts.commission)],
      ],
    }),
  }),

  'billing_cycle.closed': mail({
    text: (
      facts: { amount_due: string; period_start: number; period_end: number; payment_url: string | null },
      { day },
    ) => ({
      subject: `Invoice: ${rupees(facts.amount_due)} due`,
      paragraphs: [
        'A billing cycle closed. Pay the amount due, so that your creators can be paid.',
        ...(facts.payment_url === null ? ['The payment request reaches you through your bank.'] : []),
      ],
      details: [
        ['Period', `${day(facts.period_start)} to ${day(facts.period_end)}`],
        ['Amount due', rupees(facts.amount_due)],
      ],
      button: payment(facts.payment_url),
    }),
  }),

  'billing_cycle.overdue': mail({
    factsOf: ({ amount_due, closed_at, payment_url }: BillingCycleWire, { created_at }) => ({
      amount_due,
      closed_at: closed_at === null ? created_at : Date.parse(closed_at),
      payment_url,
    }),
    text: (facts: { amount_due: string; closed_at: number; payment_url: string | null }, { day }) => ({
      subject: `Overdue: ${rupees(facts.amount_due)}`,
      paragraphs: ['A billing cycle has not been paid. Your creators wait for their commission. Pay it now.'],
      details: [
        ['Closed', day(facts.closed_at)],
        ['Amount due', rupees(facts.amount_due)],
      ],
      button: payment(facts.payment_url),
    }),
  }),

  'store.silent': mail({
    factsOf: ({ shop_domain, last_event_at }: Store) => ({
      shop_domain,
      last_event_at: last_event_at === null ? null : Date.parse(last_event_at),
    }),
    text: (facts: { shop_domain: string; last_event_at: number | null }, { time }) => ({
      subject: `No events from ${facts.shop_domain}`,
      paragraphs: [
        'Your store sent orders regularly and has now been silent. Sales are not counted while its webhook does not reach this service. Check the webhook in the settings of your store.',
      ],
      details: [
        ['Store', facts.shop_domain],
        ...row('Last event', facts.last_event_at === null ? null : time(facts.last_event_at)),
      ],
    }),
  }),

  'store.rejecting': mail({
    factsOf: ({ shop_domain, last_refusal: refusal }: Store) =>
      refusal && { shop_domain, at: Date.parse(refusal.at), reason: refusal.reason },
    text: (
      facts: { shop_domain: string; at: number; reason: NonNullable<Store['last_refusal']>['reason'] },
      { time },
    ) => ({
      subject: `Deliveries from ${facts.shop_domain} are refused`,
      paragraphs: [
        'Deliveries in the name of your store fail verification, so their orders earn no one a commission.',
        facts.reason === 'no_signature'
          ? 'The last one had no signature. Shopify signs each delivery: if your orders still arrive, someone else sent it.'
          : 'The last one was signed with another secret. Store the secret that Shopify shows below its webhooks, then send a test notification.',
      ],
      details: [
        ['Store', facts.shop_domain],
        ['Last refused', time(facts.at)],
      ],
    }),
  }),

  'payout.paid': mail({
    factsOf: ({ amount }: PayoutWire) => ({ amount }),
    text: ({ amount }: { amount: string }) => ({
      subject: `Payout of ${rupees(amount)} paid`,
      paragraphs: ['A payout to your account was paid.'],
      details: [['Amount', rupees(amount)]],
    }),
  }),

  'payout.failed': mail({
    factsOf: ({ amount, failure_reason: reason = null }: PayoutWire) => ({ amount, reason }),
    text: ({ amount, reason }: { amount: string; reason: string | null }) => ({
      subject: `Payout of ${rupees(amount)} failed`,
      paragraphs: [
        'A payout to your account failed. The amount is part of your balance again. Check the IBAN and the account title of your payout account.',
      ],
      details: [['Amount', rupees(amount)], ...row('Reason', reason)],
    }),
  }),
} satisfies Record<MailEvent, unknown>

export type EventMailFacts = { [Event in MailEvent]: Parameters<(typeof EVENT_MAILS)[Event]['text']>[0] }

const row = (label: string, value: string | null): [string, string][] =>
  value === null ? [] : [[label, value]]

function payment(url: string | null): MailParts['button'] {
  return url === null ? null : { label: 'Pay now', url }
}

function rupees(amount: string): string {
  const paisa = parseMoney(amount)
  return paisa === null ? `Rs ${amount}` : displayMoney(paisa)
}
