import { withReplicaTimeout } from './database/database.ts'
import type { OpenDatabase } from './database/open-database.ts'
import type { Replica } from './database/postgres-replica.ts'
import type { Platform } from './platform.ts'

/**
 * Runs `work`, which only reads, over the replica of DATABASE_READ_URL; without a usable one, or if it fails, over the primary. For what is
 * public: the replica may be five seconds behind. Authorization, sessions and money are read from the primary.
 */
export async function readReplica<T>(
  platform: Platform,
  work: (platform: Platform) => Promise<T>,
): Promise<T> {
  const replica = replicaOf(platform)
  if (!replica?.isUsable) return work(platform)
  try {
    return await withReplicaTimeout(() => work(over(replica, platform)))
  } catch (error) {
    const kind = platform.database.faultOf(error)?.kind
    // A standby also ends queries that conflict with what it replays.
    if (kind !== 'unavailable' && kind !== 'contention') throw error
    replica.setAside()
    return work(platform)
  }
}

/** A platform for long reads that must see all that is committed now: over the replica if it has that, else over the primary. */
export async function currentReads(platform: Platform): Promise<Platform> {
  const replica = replicaOf(platform)
  return replica?.isUsable && (await replica.reachesNow()) ? over(replica, platform) : platform
}

function replicaOf({ database }: Platform): Replica | null {
  const open = database as OpenDatabase
  return open.dialect === 'postgresql' ? open.replica : null
}

/** The same platform with the replica as its reader. */
function over(replica: Replica, platform: Platform): Platform {
  const database = Object.create(platform.database, { reader: { value: replica.reader } })
  return Object.create(platform, { database: { value: database } })
}
