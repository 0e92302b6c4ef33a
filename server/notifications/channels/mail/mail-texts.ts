import { DateTime } from 'luxon'
import type { MailEvent } from '../../../../shared/events.ts'
import { displayMoney, parseMoney } from '../../../../shared/money.ts'
import type { CreditRequest } from '../../../../shared/schemas/admin.ts'
import type { Application } from '../../../../shared/schemas/applications.ts'
import type { BillingCycleWire } from '../../../../shared/schemas/billing.ts'
import type { PayoutWire } from '../../../../shared/schemas/payouts.ts'
import type { Store } from '../../../../shared/schemas/stores.ts'
import type { ApiKeyScope, UserWire } from '../../../../shared/schemas/users.ts'
import type { OutboxEventRow } from '../../outbox.service.ts'

/** What a mail says, before it is laid out. Text that users wrote is only in `details`, and at the end of `subject`. */
export interface MailText {
  subject: string
  paragraphs: string[]
  /** Labels with their values. */
  details: [label: string, value: string][]
  button: { label: string; url: string } | null
}

type MailParts = Omit<MailText, 'details' | 'button'> & Partial<MailText>

/** Where the links lead to, and how times are written. */
interface MailSetting {
  publicBaseUrl: string
  timeZone: string
  /** The token of the mail's link, or what stands in its place. */
  token: string | null
  /**
   * Whether the mail may repeat what the account's owner chose: not to an unverified address, since anyone can register another's
   * address and choose a text for it.
   */
  showsOwnText: boolean
}

interface TextTools extends Pick<MailSetting, 'showsOwnText'> {
  /** Times (epoch ms) as texts in the time zone of the service. */
  day(at: number): string
  time(at: number): string
  /** A button whose link holds the token. */
  link(label: string, path: string): MailParts['button']
}

/** Looks up an offer's title. */
type TitleOf = (offerId: string) => Promise<string>

interface Mail<Data, Facts> {
  /**
   * What the mail keeps of an event's `data`; `null` for no mail. Absent for mails that no event writes, for sales, which come in large
   * numbers, so that their parties hear of the first one only, and for closed cycles, whose mail waits for the link to pay by.
   */
  factsOf?(data: Data, event: OutboxEventRow, titleOf: TitleOf): Facts | null | Promise<Facts | null>
  text(facts: Facts, tools: TextTools): MailParts
}

const mail = <Data, Facts>(one: Mail<Data, Facts>) => one

const IF_NOT_YOU = 'If this was not you, reset your password now and contact the operator of this service.'

const CHANGED_BY = {
  owner: 'The password of your account was changed, and all other sessions ended.',
  reset:
    'The password of your account was reset by a link from an e-mail, and all sessions and API keys ended.',
  operator:
    'The operator of this service gave your account a new password, and all sessions and API keys ended.',
}

/** What became of a second factor; `reset` is an operator's. */
const SECOND_FACTOR = {
  on: {
    subject: 'Your second factor was turned on',
    change:
      'From now on, logging in needs a code of your authenticator app, or a recovery code. Keep the recovery codes where the phone is not.',
  },
  off: {
    subject: 'Your second factor was turned off',
    change: 'Logging in needs only your password now.',
  },
  reset: {
    subject: 'Your second factor was removed',
    change:
      'The operator of this service removed the second factor of your account, and all sessions ended. Logging in needs only your password now.',
  },
  code_used: {
    subject: 'A recovery code was used',
    change:
      'A recovery code of your account was used in place of a code of your authenticator app. It works no more.',
  },
  codes_renewed: {
    subject: 'You have new recovery codes',
    change: 'New recovery codes were made for your account. The former ones work no more.',
  },
}

export type SecondFactorChange = keyof typeof SECOND_FACTOR

const DISABLED_BECAUSE: Record<string, string> = {
  gone: 'it answered 410',
  failing: 'it failed for 5 days',
  operator: 'the operator of this service disabled it',
}

/** Each kind of mail: about the account, then about events. Facts are stored: times are epoch ms, amounts are text such as `1250.00`. */
const MAILS = {
  verify_email: mail({
    text: (_: Record<string, never>, { link }) => ({
      subject: 'Verify your e-mail address',
      paragraphs: [
        'An account was opened with this e-mail address. Confirm that the address is yours. The link is valid for 24 hours.',
        'If you did not open an account, ignore this e-mail.',
      ],
      button: link('Verify e-mail address', 'account/verify-email'),
    }),
  }),

  password_reset: mail({
    text: (_: Record<string, never>, { link }) => ({
      subject: 'Reset your password',
      paragraphs: [
        'A new password was requested for your account. The link is valid for one hour and works once.',
        'If you did not request it, ignore this e-mail: your password stays as it is.',
      ],
      button: link('Choose a new password', 'account/reset-password'),
    }),
  }),

  password_changed: mail({
    text: (facts: { at: number; by: keyof typeof CHANGED_BY }, { time }) => ({
      subject: 'Your password was changed',
      paragraphs: [CHANGED_BY[facts.by], IF_NOT_YOU],
      details: [['Time', time(facts.at)]],
    }),
  }),

  payout_destination_changed: mail({
    factsOf(
      { payout_destination: current, upcoming_payout_destination: upcoming }: UserWire,
      { created_at },
    ) {
      const iban_last4 = (upcoming ?? current)?.iban_last4 ?? ''
      return {
        at: created_at,
        iban_last4,
        effective_at: upcoming ? Date.parse(upcoming.effective_at) : created_at,
      }
    },
    text: (facts: { at: number; iban_last4: string; effective_at: number }, { time }) => ({
      subject: 'Your payout account was changed',
      paragraphs: ['A payout account was set for your account.', IF_NOT_YOU],
      details: [
        ['New account', `IBAN ending in ${facts.iban_last4}`],
        ['Changed', time(facts.at)],
        ['In effect from', time(facts.effective_at)],
      ],
    }),
  }),

  billing_account_changed: mail({
    text: (facts: { at: number; last4: string }, { time }) => ({
      subject: 'Your billing account was changed',
      paragraphs: ['Invoices will be paid from another account.', IF_NOT_YOU],
      details: [
        ['New account', `ending in ${facts.last4}`],
        ['Changed', time(facts.at)],
      ],
    }),
  }),

  /** `network`: the prefix of the client's address. `program`: browser or app and system in words of ours. */
  new_login: mail({
    text: (facts: { at: number; network: string; program: string | null }, { time }) => ({
      subject: 'New log-in to your account',
      paragraphs: [
        'Your account was logged in to from a network that it has not used lately.',
        'If this was you, there is nothing to do. If not, change your password now, which ends all other sessions, or reset it, which ends every session and API key. Then look at your bank account in your account, and turn on a second factor.',
      ],
      details: [
        ['Time', time(facts.at)],
        ...row('Device', facts.program || null),
        ['Network', facts.network],
      ],
    }),
  }),

  second_factor_changed: mail({
    text: (facts: { at: number; change: SecondFactorChange }, { time }) => ({
      subject: SECOND_FACTOR[facts.change].subject,
      paragraphs: [SECOND_FACTOR[facts.change].change, IF_NOT_YOU],
      details: [['Time', time(facts.at)]],
    }),
  }),

  api_key_created: mail({
    text: (
      facts: { at: number; name: string; scope: ApiKeyScope; last4: string; expires_at: number | null },
      { time, showsOwnText },
    ) => ({
      subject: 'A new API key for your account',
      paragraphs: [
        facts.scope === 'read'
          ? 'An API key was created. A program that has it can read what your account can.'
          : 'An API key was created. A program that has it can act for your account, except for what concerns its safety.',
        IF_NOT_YOU,
      ],
      details: [
        ...row('Name', showsOwnText ? facts.name : null),
        ['Key', `ending in ${facts.last4}`],
        ['Created', time(facts.at)],
        ...row('Expires', facts.expires_at === null ? null : time(facts.expires_at)),
      ],
    }),
  }),

  account_suspended: mail({
    text: (facts: { at: number }, { time }) => ({
      subject: 'Your account was suspended',
      paragraphs: [
        'The operator of this service suspended your account. You cannot log in, and your links earn nothing until it is reinstated.',
        'Reply to this e-mail to contact the operator.',
      ],
      details: [['Time', time(facts.at)]],
    }),
  }),

  webhook_endpoint_disabled: mail({
    factsOf: ({ url, disabled_reason }: { url: string; disabled_reason: string }, { created_at }) => ({
      at: created_at,
      url,
      reason: disabled_reason,
    }),
    text: (facts: { at: number; url: string; reason: string }, { time, showsOwnText }) => ({
      subject: 'Your webhook endpoint was disabled',
      paragraphs: ['Your endpoint receives no more events. Fix it, then enable it again.'],
      details: [
        ...row('Endpoint', showsOwnText ? facts.url : null),
        ['Reason', DISABLED_BECAUSE[facts.reason] ?? facts.reason],
        ['Time', time(facts.at)],
      ],
    }),
  }),

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

  'link.ended': mail({
    factsOf: ({
      offer,
      url,
      end_reason: reason,
    }: {
      offer: { title: string }
      url: string
      end_reason: string | null
    }) => ({
      offer: offer.title,
      link: url,
      reason,
    }),
    text: (facts: { offer: string; link: string; reason: string | null }) => ({
      subject: `Your affiliate link has ended: ${facts.offer}`,
      paragraphs: [
        'The merchant ended your affiliate link. It earns nothing for visits from now on. Orders from earlier visits still count within their window.',
      ],
      details: [
        ['Offer', facts.offer],
        ['Affiliate link', facts.link],
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

  'credit_request.decided': mail({
    factsOf: ({ amount, status, granted_amount }: CreditRequest) => ({ amount, status, granted_amount }),
    text: (facts: Pick<CreditRequest, 'amount' | 'status' | 'granted_amount'>) => ({
      subject: `Credit request ${facts.status}: ${rupees(facts.amount)}`,
      paragraphs: [
        facts.status === 'granted'
          ? 'Your credit request was granted. The credit is used by your next invoices.'
          : 'Your credit request was declined. Reply to this e-mail to contact the operator.',
      ],
      details: [
        ['Requested', rupees(facts.amount)],
        ...row('Granted', facts.granted_amount === null ? null : rupees(facts.granted_amount)),
      ],
    }),
  }),

  'billing_cycle.closed': mail({
    text: (facts: Payable & { amount_due: string; period_start: number; period_end: number }, { day }) => ({
      subject: `Invoice: ${rupees(facts.amount_due)} due`,
      paragraphs: [
        'A billing cycle closed. Pay the amount due, so that your creators can be paid.',
        ...(facts.transfer || facts.payment_url !== null
          ? transferLines(facts)
          : ['The payment request reaches you through your bank.']),
      ],
      details: [
        ...row('Invoice', facts.transfer?.number ?? null),
        ['Period', `${day(facts.period_start)} to ${day(facts.period_end)}`],
        ['Amount due', rupees(facts.amount_due)],
      ],
      button: payment(facts.payment_url),
    }),
  }),

  'billing_cycle.overdue': mail({
    factsOf: ({ closed_at, ...cycle }: BillingCycleWire, { created_at }) => ({
      amount_due: cycle.amount_due,
      closed_at: closed_at === null ? created_at : Date.parse(closed_at),
      payment_url: cycle.payment_url,
      ...(cycle.payment_instructions && {
        transfer: { number: cycle.processor_invoice_id, instructions: cycle.payment_instructions },
      }),
    }),
    text: (facts: Payable & { amount_due: string; closed_at: number }, { day }) => ({
      subject: `Overdue: ${rupees(facts.amount_due)}`,
      paragraphs: [
        'A billing cycle has not been paid. Your creators wait for their commission. Pay it now.',
        ...transferLines(facts),
      ],
      details: [
        ...row('Invoice', facts.transfer?.number ?? null),
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
} satisfies Record<MailEvent, unknown> & Record<string, unknown>

export type MailKind = keyof typeof MAILS
type FactsOf<Kind extends MailKind> = Parameters<(typeof MAILS)[Kind]['text']>[0]

/** A mail's kind with its facts. */
export type MailContent = { [Kind in MailKind]: { kind: Kind; facts: FactsOf<Kind> } }[MailKind]

/** The mail about an event; `null` for none. */
export async function mailAbout(event: OutboxEventRow, titleOf: TitleOf): Promise<MailContent | null> {
  const mails = MAILS as Record<string, Mail<unknown, unknown>>
  // Mails about the account itself cannot be turned off; their names tell them from those that can.
  const kind = event.type in mails ? event.type : event.type.replace('.', '_')
  const facts = (await mails[kind]?.factsOf?.(JSON.parse(event.data), event, titleOf)) ?? null
  return facts && ({ kind, facts } as MailContent)
}

export function mailText({ kind, facts }: MailContent, setting: MailSetting): MailText {
  const inZone = (at: number, format: string) =>
    DateTime.fromMillis(at, { zone: setting.timeZone }).setLocale('en').toFormat(format)
  const { text } = MAILS[kind] as Mail<unknown, typeof facts>
  const parts = text(facts, {
    day: (at) => inZone(at, 'd LLLL yyyy'),
    time: (at) => inZone(at, `d LLLL yyyy, HH:mm ${ZONE_NAMES[setting.timeZone] ?? 'ZZZZ'}`),
    // Browsers send the fragment to no server.
    link: (label, path) => ({ label, url: `${setting.publicBaseUrl}/${path}#token=${setting.token ?? ''}` }),
    showsOwnText: setting.showsOwnText,
  })
  return { details: [], button: null, ...parts }
}

/** Names that the library has only as an offset, quoted as its formats need it. */
const ZONE_NAMES: Record<string, string> = { 'Asia/Karachi': "'PKT'" }

const row = (label: string, value: string | null): [string, string][] =>
  value === null ? [] : [[label, value]]

/** How an invoice is paid: at an address, or by a bank transfer that names the invoice. */
interface Payable {
  payment_url: string | null
  transfer?: { number: string | null; instructions: string }
}

function transferLines({ transfer }: Payable): string[] {
  if (!transfer) return []
  return [
    'Pay by bank transfer, with the number of the invoice as the reference:',
    ...transfer.instructions.split('\n'),
  ]
}

function payment(url: string | null): MailParts['button'] {
  return url === null ? null : { label: 'Pay now', url }
}

function rupees(amount: string): string {
  const paisa = parseMoney(amount)
  return paisa === null ? `Rs ${amount}` : displayMoney(paisa)
}
