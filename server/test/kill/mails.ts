import * as assert from 'uvu/assert'
import type { Database } from '../../platform/database/database.ts'
import type { ReceivedMail } from '../testkit/mail-server.ts'
import type { Cast } from './figures.ts'

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

/** By hand, the mails to each of a round's people: `count kind`, by kind. */
export const EXPECTED_MAILS: Record<string, string[]> = {
  merchant: ['2 application.created', '2 billing_cycle.closed', '1 sale.accepted'],
  ayesha: ['1 application.decided', '2 payout.paid', '1 payout_destination_changed', '1 sale.accepted'],
  bilal: ['1 application.decided', '1 payout.paid', '1 payout_destination_changed', '1 sale.accepted'],
}

/** The mails to each of a round's people. Fails for one that has not arrived. */
export async function readMails(
  { reader }: Database,
  arrivals: readonly Arrival[],
  { merchantId, creators }: Cast,
): Promise<Record<string, string[]>> {
  const people = { merchant: merchantId, ...creators }
  const rows = await reader
    .selectFrom('mails')
    .select(['id', 'kind', 'user_id', 'state', 'last_error'])
    .where('user_id', 'in', Object.values(people))
    .execute()
  const arrived = new Set(arrivals.map(({ id }) => id))
  const late = rows.filter(({ id, state }) => state !== 'sent' || !arrived.has(id))
  assert.equal(late, [], 'mails that have not arrived')
  return countsOf(people, rows, 'user_id', 'kind')
}

/** How many rows of each word each of the people has: `count word`, by word. */
export function countsOf<Owner extends string, Word extends string>(
  people: Record<string, string>,
  rows: readonly Record<Owner | Word, string>[],
  owner: Owner,
  word: Word,
): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(people).map(([name, id]) => {
      const words = rows.filter((row) => row[owner] === id).map((row) => row[word])
      const counts = [...Map.groupBy(words, (one) => one)].sort(([a], [b]) => (a < b ? -1 : 1))
      return [name, counts.map(([one, all]) => `${all.length} ${one}`)]
    }),
  )
}

/** Mails that arrived twice although the server did not die in between. */
export function needlessRepeats(arrivals: readonly Arrival[]): Arrival[] {
  const seen = new Set<string>()
  return arrivals.filter(({ id, life }) => {
    const key = `${id} ${life}`
    return seen.has(key) || !seen.add(key)
  })
}
