import { Client } from 'pg'

/** A gigabyte of files of 16 MB: as much as the server lets its log grow to before it takes old files of it again. */
const FILES = 64
/** Under this, no checkpoint takes old files again while they are made. */
const MORE_THAN_THEY_TAKE = '4GB'

/**
 * Fills the log of a new server once, as on a server that has been under load for a while: it then reuses old files of the log. A new
 * server creates each file, full of zeros and synced, and writers wait for that.
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
