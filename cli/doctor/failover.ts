import { sql } from 'kysely'
import { lastSeal } from '../../server/ledger/seals/seals.service.ts'
import {
  compareWithStorage,
  openSealStorage,
  sealName,
} from '../../server/ledger/seals/stored-seals.service.ts'
import type { Config } from '../../server/platform/config.ts'
import { countOf } from '../../server/platform/database/bulk-values.ts'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import { type FileStorage, readText } from '../../server/platform/storage/storage.ts'
import { DAY_MS } from '../../shared/durations.ts'
import { about, type Found, wordsOf } from './finding.ts'

const { ok, warn, fail } = about('failover')
const MOST_STORES = 20

/** Up to when it is known that the database holds everything, epoch ms; `null` when nothing is known. And why. */
type Known = [until: number | null, found: Found]

/**
 * After a standby took over: whether acknowledged events may have been lost, and how to find them. The newest seal that is kept in
 * SEAL_STORAGE shows up to when the journal is whole; only the stores and the processor know what came later. Reads only.
 */
export async function examineFailover(config: Config, database: OpenDatabase): Promise<Found> {
  const [until, found] = await compareSeals(config, database)
  return [
    found,
    await examineReplication(database),
    await examineReferences(database, until),
    await storesToCompare(database, until),
    warn(
      'payments and payouts that were started since then may be missing too',
      'Run "affiliate billing reconcile": it flags each difference from the processor\'s records.',
    ),
  ]
}

async function compareSeals(config: Config, database: OpenDatabase): Promise<Known> {
  try {
    const storage = await openSealStorage(config)
    if (!storage) return [null, await withoutStorage(database)]
    return await compareStored(database, storage).finally(() => storage.close())
  } catch (error) {
    const detail = `the seals in SEAL_STORAGE cannot be compared: ${wordsOf(error)}`
    const mend = 'Check SEAL_STORAGE, the S3 settings and the permissions of the key, and run this again.'
    return [null, fail(detail, mend)]
  }
}

async function withoutStorage({ reader }: OpenDatabase): Promise<Found> {
  const seal = await lastSeal(reader)
  return warn(
    `SEAL_STORAGE is not set: nothing outside this database shows what it held; its own last seal is ${seal ? `number ${seal.position} of ${timeText(seal.sealedAt)}` : 'none'}`,
    'Compare a digest that you kept: "affiliate ledger verify --against DIGEST". Set SEAL_STORAGE for the next time.',
  )
}

async function compareStored({ reader }: OpenDatabase, storage: FileStorage): Promise<Known> {
  const last = await lastSeal(reader)
  const { rows: newest, breaches } = await compareWithStorage(reader, storage)
  if (breaches.length > 0) {
    const kept = await newestKept(storage, last?.position ?? 0)
    const end = kept === null ? '' : `; the storage ends with seal ${kept}`
    const lost = breaches.map(({ subject, detail }) =>
      fail(
        `acknowledged events were lost: ${subject}: ${detail}${end}`,
        'Stop the service and keep the data folder of the former primary: what is missing may still be there. Then see the guide high-availability, "After a failover".',
      ),
    )
    return [null, lost]
  }
  const stored = newest === 0 ? null : await readText(storage, sealName(newest))
  if (stored === null) {
    const detail = 'SEAL_STORAGE holds no seal yet: nothing outside this database shows what it held'
    return [null, warn(detail, 'Compare everything since the first order.')]
  }
  const until = Date.parse((JSON.parse(stored) as { sealed_at: string }).sealed_at)
  const detail = `seal ${newest} of ${timeText(until)}, the newest in SEAL_STORAGE, is in this database`
  return [until, ok(detail)]
}

/** The last of the seals that follow one another in the storage after this position; `null` when there is none. */
async function newestKept(storage: FileStorage, position: number): Promise<number | null> {
  let newest = position
  while ((await readText(storage, sealName(newest + 1))) !== null) newest += 1
  return newest === position ? null : newest
}

/** Whether commits of this primary wait for a standby: without that, each failover loses the newest ones. */
async function examineReplication(database: OpenDatabase): Promise<Found> {
  if (database.dialect !== 'postgresql') return null
  const { rows } = await sql<{ names: string; level: string }>`
    select current_setting('synchronous_standby_names') as names, current_setting('synchronous_commit') as level`.execute(
    database.reader,
  )
  const { names = '', level = '' } = rows[0] ?? {}
  if (names !== '' && ['on', 'remote_apply', 'remote_write'].includes(level)) {
    return ok(`commits wait for a standby: synchronous_standby_names is ${names}`)
  }
  const why = names === '' ? 'synchronous_standby_names is empty' : `synchronous_commit is ${level}`
  return warn(
    `commits wait for no standby (${why}): the next failover can lose what was acknowledged last`,
    'See that a standby streams and that the cluster software is in its synchronous mode.',
  )
}

/** A lost click shows when an order names it. */
async function examineReferences({ reader }: OpenDatabase, until: number | null): Promise<Found> {
  if (until === null) return null
  const count = await countOf(
    reader
      .selectFrom('sales')
      .where('rejection_reason', '=', 'unknown_tracking_reference')
      .where('created_at', '>=', until),
  )
  if (count === 0) return ok('no order since then names a click that this database does not hold')
  const orders = count === 1 ? 'order since then names a click' : 'orders since then name clicks'
  return warn(
    `${count} ${orders} that this database does not hold`,
    `Clicks may have been lost. Look at these sales: "affiliate sales list --status rejected --from ${timeText(until)}".`,
  )
}

async function storesToCompare({ reader }: OpenDatabase, until: number | null): Promise<Found> {
  const rows = await reader
    .selectFrom('stores')
    .select('shop_domain')
    .distinct()
    .where('removed_at', 'is', null)
    .orderBy('shop_domain')
    .limit(MOST_STORES + 1)
    .execute()
  if (rows.length === 0) return ok('no store is connected')
  const since =
    until === null ? 'every order of the days before the failover' : `what came after ${timeText(until)}`
  const domains = rows.slice(0, MOST_STORES).map(({ shop_domain }) => shop_domain)
  const more = rows.length > MOST_STORES ? '; "affiliate stores list" names the others' : ''
  return warn(
    `the cluster may have lost ${since}: only the stores' own lists of orders show it`,
    `Have each store export its orders ${until === null ? 'of those days' : `from ${dayText(until)} on`} and run "affiliate stores compare DOMAIN orders_export.csv": ${domains.join(', ')}${more}`,
  )
}

function timeText(time: number): string {
  return new Date(time).toISOString()
}

/** A day earlier, since an order can be paid, and reported, later than it was placed. */
function dayText(time: number): string {
  return new Date(time - DAY_MS).toISOString().slice(0, 10)
}
