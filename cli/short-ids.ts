import type { Command } from 'commander'
import type { Queries } from '../server/platform/database/database.ts'
import { isIdTail } from './command.ts'
import { Failure } from './failures.ts'

/** The tables that hold the ids of an argument or option, by the name of its value: `<offer>`, `--cycle <cycle>`. */
export const ID_TABLES: Readonly<Record<string, readonly string[]>> = {
  user: ['users'],
  owner: ['users'],
  merchant: ['users'],
  session: ['sessions'],
  store: ['stores'],
  offer: ['offers'],
  cycle: ['billing_cycles'],
  payout: ['payouts'],
  flag: ['flags'],
  mail: ['mails'],
  endpoint: ['webhook_endpoints'],
  event: ['inbound_events'],
  fixtures: ['inbound_events'],
  subject: [
    ...['users', 'stores', 'offers', 'affiliate_links', 'sales', 'billing_cycles', 'payouts'],
    ...['inbound_events', 'webhook_endpoints'],
  ],
}
/** Senders choose delivery ids, which may look like the end of one of ours. */
const ALSO_NAMED = ['event', 'fixtures']

/**
 * Replaces each short id among a command's arguments and options with the id that ends with it, before the command runs. Opens the
 * database only where there is one to replace. Throws `Failure` if no id or several end so.
 */
export async function resolveShortIds(command: Command): Promise<void> {
  const { processedArgs } = command
  const values = [
    ...command.registeredArguments.map((argument, at) => ({
      name: argument.name(),
      value: processedArgs[at] as unknown,
      set: (id: unknown) => processedArgs.splice(at, 1, id),
    })),
    ...command.options.map((option) => ({
      name: /<(\w+)>/.exec(option.flags)?.[1] ?? '',
      value: command.getOptionValue(option.attributeName()) as unknown,
      set: (id: unknown) => command.setOptionValue(option.attributeName(), id),
    })),
  ].filter(({ name, value }) => name in ID_TABLES && [value].flat().some(isIdTail))
  if (values.length === 0) return
  const { assertMigrated, READS, withDatabase } = await import('./context.ts')
  await withDatabase(
    command,
    async ({ database }) => {
      await assertMigrated(database, READS)
      for (const { name, value, set } of values) {
        const resolve = async (text: unknown) => {
          const id = isIdTail(text) ? await idEndingWith(database.reader, ID_TABLES[name] ?? [], text) : null
          if (id !== null || !isIdTail(text) || ALSO_NAMED.includes(name)) return id ?? text
          throw new Failure(`No ${name} has an id that ends with ${text}.`, { code: 'not_found' })
        }
        set(Array.isArray(value) ? await Promise.all(value.map(resolve)) : await resolve(value))
      }
    },
    READS,
  )
}

const MOST_CANDIDATES = 20

/** The id in these tables that ends with `text`; `null` if it is not the end of one. Throws `Failure` with the candidates if several do. */
export async function idEndingWith(
  db: Queries,
  tables: readonly string[],
  text: string,
): Promise<string | null> {
  if (!isIdTail(text)) return null
  const { idsEndingWith } = await import('../server/reports/id-lookup.service.ts')
  const tail = text.trim().toLowerCase()
  const candidates = await idsEndingWith(db, { tables, tail, limit: MOST_CANDIDATES })
  if (candidates.length < 2) return candidates[0] ?? null
  throw new Failure(`Several ids end with ${tail}. Give more of one:`, {
    extra: { candidates },
    lines: candidates.map((id) => `  ${id}`),
  })
}
