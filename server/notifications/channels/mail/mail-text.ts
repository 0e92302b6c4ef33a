import { DateTime } from 'luxon'
import type { MailEvent } from '../../../../shared/events.ts'
import {
  EVENT_MAILS,
  type EventMailFacts,
  type MailParts,
  type MailText,
  type TimeTexts,
} from './event-mails.ts'
import type { MailContent, SecondFactorChange } from './mail-facts.ts'

/** Where the links lead to, and how times are written. */
export interface MailSetting {
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

const IF_NOT_YOU = 'If this was not you, reset your password now and contact the operator of this service.'
const IF_NOT_YOUR_LOGIN =
  'If this was you, there is nothing to do. If not, change your password now, which ends all other sessions, or reset it, which ends every session. Then look at your bank account in your account, and turn on a second factor.'

export function mailText(mail: MailContent, setting: MailSetting): MailText {
  return { details: [], button: null, ...partsOf(mail, setting) }
}

function partsOf({ kind, facts }: MailContent, setting: MailSetting): MailParts {
  const inZone = (at: number, format: string) =>
    DateTime.fromMillis(at, { zone: setting.timeZone }).setLocale('en').toFormat(format)
  const time = (at: number) => inZone(at, `d LLLL yyyy, HH:mm ${ZONE_NAMES[setting.timeZone] ?? 'ZZZZ'}`)
  const day = (at: number) => inZone(at, 'd LLLL yyyy')
  switch (kind) {
    case 'verify_email':
      return {
        subject: 'Verify your e-mail address',
        paragraphs: [
          'An account was opened with this e-mail address. Confirm that the address is yours. The link is valid for 24 hours.',
          'If you did not open an account, ignore this e-mail.',
        ],
        button: link(setting, 'Verify e-mail address', 'account/verify-email'),
      }
    case 'password_reset':
      return {
        subject: 'Reset your password',
        paragraphs: [
          'A new password was requested for your account. The link is valid for one hour and works once.',
          'If you did not request it, ignore this e-mail: your password stays as it is.',
        ],
        button: link(setting, 'Choose a new password', 'account/reset-password'),
      }
    case 'password_changed':
      return {
        subject: 'Your password was changed',
        paragraphs: [CHANGED_BY[facts.by], IF_NOT_YOU],
        details: [['Time', time(facts.at)]],
      }
    case 'payout_destination_changed':
      return {
        subject: 'Your payout account was changed',
        paragraphs: ['A payout account was set for your account.', IF_NOT_YOU],
        details: [
          ['New account', `IBAN ending in ${facts.iban_last4}`],
          ['Changed', time(facts.at)],
          ['In effect from', time(facts.effective_at)],
        ],
      }
    case 'billing_account_changed':
      return {
        subject: 'Your billing account was changed',
        paragraphs: ['Invoices will be paid from another account.', IF_NOT_YOU],
        details: [
          ['New account', `ending in ${facts.last4}`],
          ['Changed', time(facts.at)],
        ],
      }
    case 'new_login':
      return {
        subject: 'New log-in to your account',
        paragraphs: [
          'Your account was logged in to from a network that it has not used lately.',
          IF_NOT_YOUR_LOGIN,
        ],
        details: [
          ['Time', time(facts.at)],
          ...(facts.program ? ([['Device', facts.program]] as [string, string][]) : []),
          ['Network', facts.network],
        ],
      }
    case 'second_factor_changed':
      return {
        ...SECOND_FACTOR[facts.change],
        paragraphs: [...SECOND_FACTOR[facts.change].paragraphs, IF_NOT_YOU],
        details: [['Time', time(facts.at)]],
      }
    case 'account_suspended':
      return {
        subject: 'Your account was suspended',
        paragraphs: [
          'The operator of this service suspended your account. You cannot log in, and your links earn nothing until it is reinstated.',
          'Reply to this e-mail to contact the operator.',
        ],
        details: [['Time', time(facts.at)]],
      }
    case 'webhook_endpoint_disabled':
      return {
        subject: 'Your webhook endpoint was disabled',
        paragraphs: ['Your endpoint receives no more events. Fix it, then enable it again.'],
        details: [
          ...(setting.showsOwnText ? ([['Endpoint', facts.url]] as [string, string][]) : []),
          ['Reason', DISABLED_BECAUSE[facts.reason] ?? facts.reason],
          ['Time', time(facts.at)],
        ],
      }
    default:
      return eventText(kind, facts, { day, time })
  }
}

/** Each kind has a text for its facts. */
function eventText<Kind extends MailEvent>(
  kind: Kind,
  facts: EventMailFacts[Kind],
  times: TimeTexts,
): MailParts {
  const { text } = EVENT_MAILS[kind] as { text(facts: EventMailFacts[Kind], times: TimeTexts): MailParts }
  return text(facts, times)
}

/** Names that the library has only as an offset, quoted as its formats need it. */
const ZONE_NAMES: Record<string, string> = { 'Asia/Karachi': "'PKT'" }

const SECOND_FACTOR: Record<SecondFactorChange, { subject: string; paragraphs: string[] }> = {
  on: {
    subject: 'Your second factor was turned on',
    paragraphs: [
      'From now on, logging in needs a code of your authenticator app, or a recovery code. Keep the recovery codes where the phone is not.',
    ],
  },
  off: {
    subject: 'Your second factor was turned off',
    paragraphs: ['Logging in needs only your password now.'],
  },
  reset: {
    subject: 'Your second factor was removed',
    paragraphs: [
      'The operator of this service removed the second factor of your account, and all sessions ended. Logging in needs only your password now.',
    ],
  },
  code_used: {
    subject: 'A recovery code was used',
    paragraphs: [
      'A recovery code of your account was used in place of a code of your authenticator app. It works no more.',
    ],
  },
  codes_renewed: {
    subject: 'You have new recovery codes',
    paragraphs: ['New recovery codes were made for your account. The former ones work no more.'],
  },
}

const DISABLED_BECAUSE: Record<string, string> = {
  gone: 'it answered 410',
  failing: 'it failed for 5 days',
  operator: 'the operator of this service disabled it',
}

const CHANGED_BY = {
  owner: 'The password of your account was changed, and all other sessions ended.',
  reset: 'The password of your account was reset by a link from an e-mail, and all sessions ended.',
  operator: 'The operator of this service gave your account a new password, and all sessions ended.',
} as const

/** The token is in the fragment, which browsers send to no server. */
function link({ publicBaseUrl, token }: MailSetting, label: string, path: string): MailText['button'] {
  return { label, url: `${publicBaseUrl}/${path}#token=${token ?? ''}` }
}
