import type { App } from '../server/app.ts'
import type { Queries } from '../server/platform/database/database.ts'

/** Who an id stands for, for people and for `--json`. */
export interface Person {
  id: string
  email: string | null
  display_name: string | null
}

const AT_ONCE = 500

/** The users of these ids, however many. */
export function peopleOf(app: App, ids: readonly string[]): Promise<(id: string) => Person> {
  return peopleIn(app.database.reader, ids)
}

/** The same from a database alone. */
export async function peopleIn(reader: Queries, ids: readonly string[]): Promise<(id: string) => Person> {
  const { displayNamesOf, emailsOf } = await import('../server/users/users.service.ts')
  const people = new Map<string, Person>()
  const distinct = [...new Set(ids)]
  for (let at = 0; at < distinct.length; at += AT_ONCE) {
    const some = distinct.slice(at, at + AT_ONCE)
    const emails = await emailsOf(reader, some)
    const names = await displayNamesOf(reader, some)
    for (const id of some) {
      people.set(id, { id, email: emails.get(id) ?? null, display_name: names.get(id) ?? null })
    }
  }
  return (id) => people.get(id) ?? { id, email: null, display_name: null }
}

/** As a table names a person. */
export function nameOf(person: Person): string {
  return person.email ?? person.id
}

/** What `--merchant`, `--creator` and `--offer` narrow a list to. Refuses an unknown user, and what is no id (exit 2). */
export async function scopeOf(
  app: App,
  options: { merchant?: string; creator?: string; offer?: string },
): Promise<{ merchantId?: string; creatorId?: string; offerId?: string }> {
  const { findUser } = await import('../server/users/users.service.ts')
  const { readId } = await import('./arguments.ts')
  const { merchant, creator, offer } = options
  return {
    ...(offer !== undefined && { offerId: readId('offer', offer) }),
    ...(merchant !== undefined && { merchantId: (await findUser(app.platform, merchant)).id }),
    ...(creator !== undefined && { creatorId: (await findUser(app.platform, creator)).id }),
  }
}
