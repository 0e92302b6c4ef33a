import { startMailServer } from '../testkit/mail-server.ts'

export type Mails = Awaited<ReturnType<typeof openMails>>

/** A mail server that outlives the server, and the settings of a server that uses it. `deaths` tells how often that one has died. */
export async function openMails(deaths: () => number) {
  const lives = new Map<string, number>()
  const server = await startMailServer({
    disabledCommands: ['STARTTLS'],
    onConnect(session, done) {
      lives.set(session.id, deaths())
      done()
    },
  })
  /** The ids of the rows whose mails were accepted, with the server's life, in order. */
  const arrived = () =>
    server.received.map(({ source, sessionId }) => {
      const id = /^Message-ID: <([0-9a-f-]{36})@bazaar\.pk>/m.exec(source)?.[1]
      if (!id) throw new Error(`a mail without the id of its row:\n${source}`)
      return { id, life: lives.get(sessionId) }
    })
  return {
    settings: { SMTP_URL: `smtp://127.0.0.1:${server.port}`, MAIL_FROM: 'no-reply@bazaar.pk' },
    arrived,
    /** Mails that arrived twice although the server did not die in between. */
    needlessRepeats: () =>
      [...Map.groupBy(arrived(), ({ id, life }) => `${id} ${life}`)].flatMap(([mail, { length }]) =>
        length > 1 ? [mail] : [],
      ),
    close: server.close,
  }
}
