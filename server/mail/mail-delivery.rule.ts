/** How a mail server, or the way to it, failed: fields of nodemailer's errors. */
export interface DeliveryFailure {
  /** SMTP status of the server's answer; `undefined` without an answer. */
  responseCode?: number | undefined
  /** The SMTP command that failed. */
  command?: string | undefined
}

/** Commands that concern one mail. A refusal of any other one (greeting, log-in, STARTTLS) concerns all mail and is ours or the server's to fix. */
const ABOUT_ONE_MAIL = ['MAIL FROM', 'RCPT TO', 'DATA']

/** Whether the server refused the mail for good (5xx). Everything else may succeed later. */
export function isFinal({ responseCode = 0, command = '' }: DeliveryFailure): boolean {
  return responseCode >= 500 && responseCode < 600 && ABOUT_ONE_MAIL.includes(command)
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A mail fails if it could not be sent for this long, ms. */
export const GIVE_UP_AFTER_MS = 2 * DAY_MS

export interface MailLimit {
  most: number
  withinMs: number
}

/** How many mails about events one address receives. */
export const EVENT_LIMIT: MailLimit = { most: 50, withinMs: DAY_MS }
/** How many mails about its account one address receives. */
export const ACCOUNT_LIMIT: MailLimit = { most: 20, withinMs: DAY_MS }
/** How many mails with a link to reset a password or verify the address; each kind by itself. */
export const TOKEN_LIMIT: MailLimit = { most: 5, withinMs: HOUR_MS }
