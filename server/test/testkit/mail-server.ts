import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { selfSigned } from '../storefront/self-signed.ts'
import { eventually } from './eventually.ts'

export interface ReceivedMail {
  from: string
  to: string[]
  /** The message with its headers. */
  source: string
  secure: boolean
  user: string | null
  /** Of the connection. */
  sessionId: string
}

export type MailServerDouble = Awaited<ReturnType<typeof startMailServer>>

/** An error that the server answers with this status. */
export function smtpError(status: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode: status })
}

/** A real SMTP server on loopback. `options` override its handlers; without `authOptional: false` it asks for no password. */
export async function startMailServer(options: SMTPServerOptions = {}) {
  const received: ReceivedMail[] = []
  const server = new SMTPServer({
    ...selfSigned('localhost'),
    authOptional: true,
    logger: false,
    closeTimeout: 10,
    onData(stream, session, done) {
      void text(stream).then((source) => {
        const { mailFrom, rcptTo } = session.envelope
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          source,
          secure: session.secure,
          user: typeof session.user === 'string' ? session.user : null,
          sessionId: session.id,
        })
        done()
      }, done)
    },
    ...options,
  })
  // A client that goes away is part of the tests.
  server.on('error', () => {})
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (server.server.address() as AddressInfo).port,
    /** What was accepted, in order. */
    received,
    /** Waits until this many mails were accepted. */
    arrived: (count: number) => eventually(() => received.length >= count),
    /** Breaks every connection. */
    drop() {
      for (const connection of server.connections) connection._socket.destroy()
    },
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
