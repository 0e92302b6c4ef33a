import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Config } from '../../../platform/config.ts'
import { dataFolder, mailMode } from '../../../platform/config.ts'
import type { Logger } from '../../../platform/log.ts'
import { isLoopbackHost } from '../../../platform/network/loopback.ts'
import { makePrivateFolder } from '../../../platform/private-files.ts'
import type { MailServer } from '../../../platform/setting-kinds.ts'
import { type DeliveryFailure, isFinal } from './mail-delivery.rule.ts'
import type { RenderedMail } from './render-mail.ts'

/** A mail with its headers. */
export interface OutgoingMail extends RenderedMail {
  id: string
  kind: string
  from: { name: string; address: string }
  to: { name: string; address: string }
  /** Without angle brackets. */
  messageId: string
  /** Addresses for mail programs, the one for one click (RFC 8058) first; `null` for mails that cannot be turned off. */
  unsubscribe: string[] | null
  /** Epoch ms. */
  createdAt: number
}

/**
 * `refused`: the server will never take it. `retry`: it may later. `detail` is one line, for the operator; it may quote addresses, and
 * `code` does not.
 */
export type SendOutcome = { kind: 'sent' } | { kind: 'refused' | 'retry'; detail: string; code: string }

export interface MailTransport {
  /** Hands a mail over. An aborted call's outcome is unknown. */
  send(mail: OutgoingMail, signal: AbortSignal): Promise<SendOutcome>
  close(): void
}

/** How many mails are handed over at the same time. */
export const CONNECTIONS = 5
const CONNECT_TIMEOUT_MS = 10_000
const SOCKET_TIMEOUT_MS = 30_000
const IDLE_TIMEOUT_MS = 30_000
const MAX_DETAIL = 300

/** The transport that the settings ask for. Loads the mail library, which takes a moment. */
export async function openMailTransport(config: Config, log: Logger): Promise<MailTransport> {
  const { createTransport } = await import('nodemailer')
  if (mailMode(config) !== 'smtp') {
    return fileTransport(createTransport(STREAM), resolve(dataFolder(config), 'mail'), log)
  }
  const transport = createTransport(smtpOptions(config.SMTP_URL as MailServer))
  return {
    async send(mail, signal) {
      try {
        await transport.sendMail({ ...messageOf(mail), signal })
        return { kind: 'sent' }
      } catch (error) {
        const failure = error as DeliveryFailure
        const kind = isFinal(failure) ? 'refused' : 'retry'
        return { kind, detail: detailOf(error), code: codeOf(failure) }
      }
    },
    close: () => transport.close(),
  }
}

function smtpOptions({ host, port, secure, requireTls, user, password }: MailServer) {
  return {
    pool: true as const,
    host,
    port,
    secure,
    requireTLS: requireTls,
    // A mail server on this machine has no certificate for its name.
    tls: { rejectUnauthorized: !isLoopbackHost(host) },
    ...(user !== null && { auth: { user, pass: password ?? '' } }),
    maxConnections: CONNECTIONS,
    maxMessages: 100,
    maxRequeues: 0,
    idleTimeout: IDLE_TIMEOUT_MS,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    dnsTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SOCKET_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

const STREAM = {
  streamTransport: true as const,
  buffer: true,
  newline: 'windows',
  disableFileAccess: true,
  disableUrlAccess: true,
}

interface StreamSender {
  sendMail(message: object): Promise<{ message: Buffer | NodeJS.ReadableStream }>
}

/** Keeps mails as `.eml` files that only this user may read, and logs each file's name. */
function fileTransport(composer: StreamSender, folder: string, log: Logger): MailTransport {
  return {
    async send(mail) {
      makePrivateFolder(folder)
      const { message } = await composer.sendMail(messageOf(mail))
      const time = new Date(mail.createdAt).toISOString().replaceAll(':', '-')
      const file = join(folder, `${time}-${mail.kind}-${mail.id}.eml`)
      await writeFile(file, message as Buffer, { mode: 0o600 })
      log.info({ file, kind: mail.kind }, 'mail written to a file; set SMTP_URL to send mail')
      return { kind: 'sent' }
    },
    close() {},
  }
}

function messageOf(mail: OutgoingMail) {
  return {
    messageId: `<${mail.messageId}>`,
    date: new Date(mail.createdAt),
    from: mail.from,
    to: mail.to,
    envelope: { from: mail.from.address, to: mail.to.address },
    subject: mail.subject,
    text: mail.text,
    html: mail.html,
    headers: {
      'Auto-Submitted': 'auto-generated',
      ...(mail.unsubscribe !== null && { 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }),
    },
    ...(mail.unsubscribe !== null && { list: { unsubscribe: [mail.unsubscribe] } }),
  }
}

/** An error in one line. */
export function detailOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, MAX_DETAIL)
}

/** The library's code, the reply's code and its enhanced one (RFC 3463), such as `EENVELOPE 550 5.1.1`. */
function codeOf({ code, responseCode, response }: DeliveryFailure): string {
  const enhanced = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response ?? '')?.[1]
  const parts = [code, responseCode, enhanced].filter((part) => part !== undefined)
  return parts.length > 0 ? parts.join(' ') : 'unknown'
}
