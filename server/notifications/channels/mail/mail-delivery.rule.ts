import { DAY_MS, HOUR_MS } from '../../../../shared/durations.ts'
import { isMailEvent } from '../../../../shared/events.ts'
import type { MailKind } from './mail-texts.ts'

/** How a mail server, or the way to it, failed: fields of nodemailer's errors. */
export interface DeliveryFailure {
  /** The library's code. */
  code?: string | undefined
  /** The server's answer. */
  response?: string | undefined
  /** SMTP status of the server's answer; `undefined` without an answer. */
  responseCode?: number | undefined
  /** The SMTP command that failed. */
  command?: string | undefined
}

/**
 * Commands that concern one mail. A refusal of any other one (greeting, log-in, STARTTLS, the sender, which is `MAIL_FROM` in every mail)
 * concerns all mail and is the operator's to fix.
 */
const ABOUT_ONE_MAIL = ['RCPT TO', 'DATA']

/** Whether the server refused the mail for good (5xx). Everything else may succeed later. */
export function isFinal({ responseCode = 0, command = '' }: DeliveryFailure): boolean {
  return responseCode >= 500 && responseCode < 600 && ABOUT_ONE_MAIL.includes(command)
}

/** A mail fails if it could not be sent for this long, ms. */
export const GIVE_UP_AFTER_MS = 2 * DAY_MS

interface MailLimit {
  most: number
  withinMs: number
}

const EVENT_LIMIT: MailLimit = { most: 50, withinMs: DAY_MS }
const ACCOUNT_LIMIT: MailLimit = { most: 20, withinMs: DAY_MS }
const TOKEN_LIMIT: MailLimit = { most: 5, withinMs: HOUR_MS }

/** Kinds whose link holds a token. */
export const WITH_TOKEN: readonly string[] = ['verify_email', 'password_reset'] satisfies MailKind[]

/**
 * How many mails of a kind one address receives. Each kind counts by itself: others can cause many of one (log-ins, applications), which
 * must not keep back the mail about a changed password or an invoice.
 */
export function limitOf(kind: MailKind): MailLimit {
  if (WITH_TOKEN.includes(kind)) return TOKEN_LIMIT
  return isMailEvent(kind) ? EVENT_LIMIT : ACCOUNT_LIMIT
}
