import type { Queries } from '../server/platform/database/database.ts'
import type { ScanScope } from '../server/platform/database/keyset-scan.ts'
import type { Platform } from '../server/platform/platform.ts'
import { findUser, peopleOf as readPeople } from '../server/users/users.service.ts'
import type { PageOptions } from './command.ts'

/** Who an id stands for, for people and for `--json`. */
export interface Person {
  id: string
  email: string | null
  display_name: string | null
}

const AT_ONCE = 500

/** The users that rows name, however many. */
export function peopleOf<Row>(
  platform: Platform,
  rows: readonly Row[],
  idsOf: (row: Row) => string | null | readonly (string | null)[],
): Promise<(id: string) => Person> {
  const ids = [...new Set(rows.flatMap(idsOf))].filter((id) => id !== null)
  return peopleIn(platform.database.reader, ids)
}

/** The users of these ids, from a database alone. */
export async function peopleIn(reader: Queries, ids: readonly string[]): Promise<(id: string) => Person> {
  const people = new Map<string, Person>()
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    for (const [id, { email, display_name }] of await readPeople(reader, ids.slice(at, at + AT_ONCE)))
      people.set(id, { id, email, display_name })
  }
  return (id) => people.get(id) ?? { id, email: null, display_name: null }
}

export async function personOf({ database }: Platform, id: string): Promise<Person> {
  return (await peopleIn(database.reader, [id]))(id)
}

/** As a table names a person. */
export function nameOf(person: Person): string {
  return person.email ?? person.id
}

/** The id of a user that an option names, if it is given. Refuses an unknown user. */
export async function userIdOf(platform: Platform, user: string | undefined): Promise<string | null> {
  return user === undefined ? null : (await findUser(platform, user)).id
}

/** What `--merchant`, `--creator` and `--offer` narrow a list to. Refuses an unknown user. */
export async function scopeOf(
  platform: Platform,
  { merchant, creator, offer }: PageOptions,
): Promise<{ merchantId?: string; creatorId?: string; offerId?: string }> {
  return {
    ...(offer !== undefined && { offerId: offer }),
    ...(merchant !== undefined && { merchantId: (await findUser(platform, merchant)).id }),
    ...(creator !== undefined && { creatorId: (await findUser(platform, creator)).id }),
  }
}

/** Whose sales `--merchant` or `--creator` narrow a list to. Refuses an unknown user. */
export async function saleScope(platform: Platform, { merchant, creator }: PageOptions): Promise<ScanScope> {
  const merchantId = await userIdOf(platform, merchant)
  const creatorId = await userIdOf(platform, creator)
  if (merchantId !== null) return { merchantId }
  return creatorId === null ? 'all' : { creatorId }
}
