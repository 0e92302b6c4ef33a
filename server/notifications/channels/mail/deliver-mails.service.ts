import { sql } from 'kysely'
import { isMailEvent } from '../../../../shared/events.ts'
import { offerTitles } from '../../../offers/offers.service.ts'
import { homeOf, mailMode } from '../../../platform/config.ts'
import { IntegrityError, UnknownKeyError } from '../../../platform/crypto/vault.ts'
import type { ColumnTypes } from '../../../platform/database/bulk-values.ts'
import type { Queries } from '../../../platform/database/database.ts'
import type { Platform } from '../../../platform/platform.ts'
import { type BackoffPolicy, retryDelay } from '../../../platform/queue/backoff.rule.ts'
import { Deliverer, firstForged } from '../../delivery.service.ts'
import type { Channel } from '../../outbox.service.ts'
import { MAIL_SIGNAL, type NewMail, sendMail, tokenBinding } from './mail.service.ts'
import {
  deleteFinished,
  findRecipients,
  MAIL_QUEUE,
  MAX_DELAY_MS,
  type MailRow,
  type Recipient,
} from './mail.store.ts'
import { type MailContent, mailAbout, mailText } from './mail-texts.ts'
import {
  CONNECTIONS,
  detailOf,
  type MailTransport,
  type OutgoingMail,
  openMailTransport,
  type SendOutcome,
} from './mail-transport.ts'
import { unsubscribeUrl } from './notifications.service.ts'
import { oneLine, renderMail } from './render-mail.ts'

/** A mail that is not handed over by then is given up for this attempt, ms. */
const SEND_TIMEOUT_MS = 90_000
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

const RESULT_COLUMNS = {
  state: 'text',
  token_encrypted: 'text',
  next_try_at: 'bigint',
  finished_at: 'bigint',
  last_error: 'text',
} as const satisfies Partial<ColumnTypes<MailRow>>

type Result = Pick<MailRow, keyof typeof RESULT_COLUMNS>
type Job = Awaited<ReturnType<typeof load>>[number]

/**
 * What a process hands over to the mail server, a few mails at the same time. A refusal (5xx) ends a mail; anything else is retried until
 * the mail's time is over. A crash between the hand-over and its record repeats the mail with the same Message-ID.
 */
export function mailDeliverer(platform: Platform, given?: MailTransport) {
  const { clock, config, log } = platform
  const stopping = new AbortController()
  let transport = given
  return new Deliverer<MailRow, Job, { sent: SendOutcome; result: Result }, Result>(platform, {
    queue: MAIL_QUEUE,
    signal: MAIL_SIGNAL,
    leaseMs: 5 * 60_000,
    graceMs: 0,
    laneOf: () => 'mail server',
    mostAtOnce: CONNECTIONS,
    only: (_db, full) => (full.length === 0 ? sql`true` : sql`false`),
    async load(rows) {
      // The mail library is loaded for the first mail.
      transport ??= await openMailTransport(config, log)
      return load(platform, rows)
    },
    async attempt(job) {
      const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(SEND_TIMEOUT_MS)])
      const sent = await attempt(platform, transport as MailTransport, job, signal)
      const now = clock.now()
      const { row } = job
      const next_try_at = now + retryDelay(row.attempts, RETRY, Math.random())
      const comesAgain = sent.kind === 'retry' && next_try_at < row.give_up_at
      const last_error = sent.kind === 'sent' ? null : sent.detail
      if (sent.kind !== 'sent' && !stopping.signal.aborted) {
        // A server's reply quotes addresses, so it stays in the mail's row.
        const { id: mail, kind, user_id: accountId, attempts } = row
        const facts = { mail, kind, accountId, attempt: attempts, code: sent.code }
        log.warn(facts, comesAgain ? 'mail not sent yet' : 'mail failed')
      }
      if (comesAgain) return { sent, result: { ...row, next_try_at, last_error } }
      const state = last_error === null ? 'sent' : 'failed'
      return { sent, result: { ...row, state, token_encrypted: null, finished_at: now, last_error } }
    },
    isCut: ({ sent }) => sent.kind === 'retry',
    columns: RESULT_COLUMNS,
    resultOf: (_job, { result }) => result,
    close() {
      stopping.abort()
      transport?.close()
    },
  })
}

async function load(platform: Platform, rows: readonly MailRow[]) {
  const userIds = new Set(rows.map((row) => row.user_id))
  const users = await findRecipients(platform.database.reader, [...userIds])
  return rows.map((row) => {
    const user = users.find(({ id }) => id === row.user_id)
    return { row, user, forged: firstForged(platform, { mails: row }) }
  })
}

async function attempt(
  platform: Platform,
  transport: MailTransport,
  { row, user, forged }: Job,
  signal: AbortSignal,
): Promise<SendOutcome> {
  if (forged) return { kind: 'refused', detail: `not sent: ${forged.problem}`, code: 'forged' }
  if (platform.clock.now() >= row.give_up_at) {
    return { kind: 'refused', detail: row.last_error ?? 'not sent in time', code: 'not sent in time' }
  }
  try {
    const link =
      row.token_encrypted === null ? null : platform.vault.open(row.token_encrypted, tokenBinding(row))
    return await transport.send(composeMail(platform, row, user, link), signal)
  } catch (error) {
    // The user can request another link.
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) {
      return { kind: 'refused', detail: `the token of its link ${error.message}`, code: error.name }
    }
    platform.log.error({ err: error, mail: row.id }, 'a mail could not be sent')
    return { kind: 'retry', code: 'internal', detail: detailOf(error) }
  }
}

/** How many mails wait, up to `most`, and when the first is due (epoch ms). */
export async function mailBacklog(db: Queries, most: number) {
  return { waiting: await MAIL_QUEUE.countOpen(db, most), firstDue: await MAIL_QUEUE.nextDueAt(db) }
}

/** Removes mails that were finished long ago. */
export function removeOldMails({ database, clock }: Platform): Promise<void> {
  return database.transaction((tx) => deleteFinished(tx, clock.now() - KEPT_MS))
}

const DEFAULT_FROM = { name: '', address: 'no-reply@localhost' }
const ACCOUNT_FOOTER = 'This e-mail is about the security of your account, so it cannot be turned off.'

/** A mail as it goes out. `token` is that of its link, or what to show in its place. */
export function composeMail(
  platform: Platform,
  row: MailRow,
  user: Recipient | undefined,
  token: string | null,
): OutgoingMail {
  const { config, publicBaseUrl } = platform
  const { id, kind, address } = row
  const content = { kind, facts: JSON.parse(row.facts) } as MailContent
  const { name: sender, address: senderAddress } = config.MAIL_FROM ?? DEFAULT_FROM
  const from = { name: sender || config.MARKETPLACE_NAME, address: senderAddress }
  const ownsAddress = user !== undefined && user.email_verified_at !== null
  const name = ownsAddress ? user.display_name : null
  const setting = { publicBaseUrl, timeZone: config.BILLING_TIMEZONE, token, showsOwnText: ownsAddress }
  const unsubscribe = isMailEvent(kind)
    ? [
        unsubscribeUrl(platform, row.user_id, kind),
        `mailto:${from.address}?subject=${encodeURIComponent(`unsubscribe ${kind}`)}`,
      ]
    : null
  const footer = unsubscribe
    ? `You receive this e-mail because your account is notified of this kind of event (${kind}). To stop it, use "Unsubscribe" in your mail program, reply with "unsubscribe", or turn it off in your account's notifications.`
    : ACCOUNT_FOOTER
  return {
    ...renderMail(mailText(content, setting), {
      marketplace: config.MARKETPLACE_NAME,
      home: homeOf(platform),
      name,
      footer,
    }),
    id,
    kind,
    from,
    to: { name: oneLine(name ?? ''), address },
    messageId: `${id}@${from.address.split('@')[1]}`,
    unsubscribe,
    createdAt: row.created_at,
  }
}
