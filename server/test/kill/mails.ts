import type { ReceivedMail } from '../testkit/mail-server.ts'

/** A mail as it was accepted. */
export interface Arrival {
  /** The row's, from the Message-ID. */
  id: string
  /** How often the server had died before it opened the connection. */
  life: number
}

export function arrivalOf({ source }: ReceivedMail, life: number): Arrival {
  const id = /^Message-ID: <([0-9a-f-]{36})@bazaar\.pk>/m.exec(source)?.[1]
  if (!id) throw new Error(`a mail without the id of its row:\n${source}`)
  return { id, life }
}

/** Mails that arrived twice although the server did not die in between. */
export function needlessRepeats(arrivals: readonly Arrival[]): Arrival[] {
  const seen = new Set<string>()
  return arrivals.filter(({ id, life }) => {
    const key = `${id} ${life}`
    return seen.has(key) || !seen.add(key)
  })
}
