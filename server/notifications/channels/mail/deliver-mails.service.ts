import { isMailEvent } from '../../../../shared/events.ts'
import { flagForgedRows } from '../../../flags/forged-rows.service.ts'
import { offerTitles } from '../../../offers/offers.service.ts'
import { type Config, mailMode } from '../../../platform/config.ts'
import { IntegrityError, UnknownKeyError } from '../../../platform/crypto/vault.ts'
import type { Queries } from '../../../platform/database/database.ts'
import { rowProblem } from '../../../platform/database/protected-rows.ts'
import type { Platform } from '../../../platform/platform.ts'
import { type BackoffPolicy, retryDelay } from '../../../platform/queue/backoff.rule.ts'
import type { Channel } from '../../outbox.service.ts'
import { type NewMail, sendMail, tokenBinding } from './mail.service.ts'
import {
  deleteFinished,
  findRecipients,
  MAIL_QUEUE,
  MAX_DELAY_MS,
  type MailRow,
  type Recipient,
} from './mail.store.ts'
import { CONNECTIONS, type MailTransport, type OutgoingMail, type SendOutcome } from './mail-transport.ts'
import { type MailContent, mailAbout, mailText } from './mails.ts'
import { unsubscribeUrl } from './notifications.service.ts'
import { oneLine, renderMail } from './render-mail.ts'

/** A mail that is not handed over by then is given up for this attempt, ms. */
const SEND_TIMEOUT_MS = 90_000
const LEASE_MS = 5 * 60_000
/** Greylisting servers accept a mail after some minutes. */
const RETRY: BackoffPolicy = { firstMs: 2000, factor: 4, maxMs: MAX_DELAY_MS }
/** How long sent and failed mails are kept, ms. */
const KEPT_MS = 90 * 24 * 3_600_000

/** Writes mails about events. */
export const mailChannel: Channel = {
  async enqueue(platform, tx, events) {
    if (mailMode(platform.config) === 'off') return
    const titleOf = async (id: string) => (await offerTitles(tx, [id])).get(id) ?? ''
    for (const event of events) {
      const content = await mailAbout(event, titleOf)
      if (!content) continue
      await sendMail(platform, tx, { ...content, userId: event.account_id, about: event.id } as NewMail)
    }
  },
}

/**
 * Sends due mails, a few at the same time, and records what became of each. Returns how many there were. A refusal (5xx) ends a mail;
 * anything else is retried until the mail's time is over. A crash between the hand-over and its record repeats the mail with the
 * same Message-ID. An aborted `stop` leaves mails for the next worker.
 */
export async function deliverMails(
  platform: Platform,
  transport: MailTransport,
  stop: AbortSignal,
): Promise<number> {
  const now = platform.clock.now()
  const lease = { token: platform.ids.next(), until: now + LEASE_MS }
  const rows = await MAIL_QUEUE.claim(platform.database, { now, limit: CONNECTIONS, lease })
  if (rows.length === 0) return 0
  const users = await recipientsOf(platform, rows, lease.token)
  const work = rows.map((row) => {
    const user = users.find(({ id }) => id === row.user_id)
    return deliver(
      platform,
      transport,
      { ...row, attempts: row.attempts + 1 },
      { user, token: lease.token, stop },
    )
  })
  const failed = (await Promise.allSettled(work)).find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
  return rows.length
}

/** Gives the mails back when their recipients cannot be read. */
async function recipientsOf({ database }: Platform, rows: readonly MailRow[], leaseToken: string) {
  try {
    return await findRecipients(database.reader, [...new Set(rows.map((row) => row.user_id))])
  } catch (error) {
    MAIL_QUEUE.abandon(database, leaseToken)
    throw error
  }
}

async function deliver(
  platform: Platform,
  transport: MailTransport,
  row: MailRow,
  { user, token, stop }: { user: Recipient | undefined; token: string; stop: AbortSignal },
): Promise<void> {
  const { database } = platform
  const signal = AbortSignal.any([stop, AbortSignal.timeout(SEND_TIMEOUT_MS)])
  const forged = rowProblem(platform.keys, 'mails', row)
  const outcome: SendOutcome =
    forged === null
      ? await attempt(platform, transport, row, user, signal)
      : { kind: 'refused', detail: `not sent: ${forged}`, code: 'forged' }
  if (stop.aborted && outcome.kind === 'retry') {
    return database.transaction((tx) => MAIL_QUEUE.release(tx, token, [row.id]))
  }
  const now = platform.clock.now()
  const retryAt = now + retryDelay(row.attempts, RETRY, Math.random())
  const comesAgain = outcome.kind === 'retry' && retryAt < row.give_up_at
  const error = outcome.kind === 'sent' ? null : outcome.detail
  await database.transaction(async (tx) => {
    const held = { id: row.id, token }
    if (forged !== null) await flagForgedRows(platform, tx, 'mails', [{ id: row.id, problem: forged }])
    if (comesAgain) return MAIL_QUEUE.defer(tx, held, retryAt, { last_error: error })
    const state = error === null ? 'sent' : 'failed'
    return MAIL_QUEUE.complete(tx, held, {
      state,
      token_encrypted: null,
      finished_at: now,
      last_error: error,
    })
  })
  if (error === null) return
  // A server's reply quotes addresses, so it stays in the mail's row.
  const code = outcome.kind === 'sent' ? null : outcome.code
  const facts = { mail: row.id, kind: row.kind, accountId: row.user_id, attempt: row.attempts, code }
  platform.log.warn(facts, comesAgain ? 'mail not sent yet' : 'mail failed')
}

async function attempt(
  platform: Platform,
  transport: MailTransport,
  row: MailRow,
  user: Recipient | undefined,
  signal: AbortSignal,
): Promise<SendOutcome> {
  if (platform.clock.now() >= row.give_up_at) {
    return { kind: 'refused', detail: row.last_error ?? 'not sent in time', code: 'not sent in time' }
  }
  try {
    const link =
      row.token_encrypted === null ? null : platform.vault.open(row.token_encrypted, tokenBinding(row))
    const mail = composeMail(platform, row, user, link)
    return await transport.send(mail, signal)
  } catch (error) {
    // The user can request another link.
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) {
      return { kind: 'refused', detail: `the token of its link ${error.message}`, code: error.name }
    }
    platform.log.error({ err: error, mail: row.id }, 'a mail could not be sent')
    return {
      kind: 'retry',
      code: 'internal',
      detail: String(error)
        .replace(/[\p{Cc}\s]+/gu, ' ')
        .slice(0, 300),
    }
  }
}

/** How many mails wait, up to `most`, and when the first is due (epoch ms). */
export async function mailBacklog(
  db: Queries,
  most: number,
): Promise<{ waiting: number; firstDue: number | null }> {
  return { waiting: await MAIL_QUEUE.countOpen(db, most), firstDue: await MAIL_QUEUE.nextDueAt(db) }
}

/** When the next mail is due, epoch ms; `null` without one. */
export function nextMailDueAt({ database }: Platform): Promise<number | null> {
  return MAIL_QUEUE.nextDueAt(database.reader)
}

/** Removes mails that were finished long ago. */
export function removeOldMails({ database, clock }: Platform): Promise<void> {
  return database.transaction((tx) => deleteFinished(tx, clock.now() - KEPT_MS))
}

const DEFAULT_FROM = { name: 'Affiliate marketplace', address: 'no-reply@localhost' }

/** A mail as it goes out. `token` is that of its link, or what to show in its place. */
export function composeMail(
  platform: Platform,
  row: MailRow,
  user: Recipient | undefined,
  token: string | null,
): OutgoingMail {
  const { config, publicBaseUrl } = platform
  const content = { kind: row.kind, facts: JSON.parse(row.facts) } as MailContent
  const from = config.MAIL_FROM ?? DEFAULT_FROM
  const isEvent = isMailEvent(row.kind)
  const ownsAddress = user !== undefined && user.email_verified_at !== null
  const name = ownsAddress ? user.display_name : null
  const text = mailText(content, {
    ...{ publicBaseUrl, timeZone: config.BILLING_TIMEZONE, token },
    showsOwnText: ownsAddress,
  })
  return {
    ...renderMail(text, { name, footer: isEvent ? eventFooter(row.kind) : ACCOUNT_FOOTER }),
    id: row.id,
    kind: row.kind,
    from,
    to: { name: oneLine(name ?? ''), address: row.address },
    messageId: `${row.id}@${from.address.split('@')[1]}`,
    unsubscribe: isMailEvent(row.kind)
      ? [unsubscribeUrl(platform, row.user_id, row.kind), unsubscribeAddress(config, row.kind)]
      : null,
    createdAt: row.created_at,
  }
}

const ACCOUNT_FOOTER = 'This e-mail is about the security of your account, so it cannot be turned off.'

function eventFooter(event: string): string {
  return `You receive this e-mail because your account is notified of this kind of event (${event}). To stop it, use "Unsubscribe" in your mail program, reply with "unsubscribe", or turn it off in your account's notifications.`
}

function unsubscribeAddress({ MAIL_FROM }: Config, event: string): string {
  const { address } = MAIL_FROM ?? DEFAULT_FROM
  return `mailto:${address}?subject=${encodeURIComponent(`unsubscribe ${event}`)}`
}
