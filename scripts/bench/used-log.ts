import { Client } from 'pg'

/** A gigabyte of files of 16 MB: as much as the server lets its log grow to before it takes old files of it again. */
const FILES = 64
/** Under this, no checkpoint takes old files again while they are made. */
const MORE_THAN_THEY_TAKE = '4GB'

/**
 * Has a new server come round its log once, as one that has been under load for a while: from then on it takes old files of the log
 * again. A new one makes each file anew, full of zeros and synced, and whoever writes meanwhile waits for 15 to 100 ms. Under 8 KB
 * webhooks that was 2.5 times a second, and decided their p99.
 */
export async function comeRoundLog(postgresUrl: string): Promise<void> {
  const client = new Client({ connectionString: postgresUrl })
  await client.connect()
  const set = async (setting: string) => {
    await client.query(`alter system ${setting}`)
    await client.query('select pg_reload_conf()')
  }
  try {
    await set(`set max_wal_size = '${MORE_THAN_THEY_TAKE}'`)
    for (let file = 0; file < FILES; file += 1) {
      // A file is left behind only when something stands in it.
      await client.query(`select pg_create_restore_point('file left behind'), pg_switch_wal()`)
    }
    await set('reset max_wal_size')
    await client.query('checkpoint')
  } finally {
    await client.end()
  }
}
