// A worker in its own process: drains the inbox and ends.
import { applyStoreEvents } from '../../jobs/apply-store-events.ts'
import { drainEvents } from '../../jobs/drain-events.ts'
import { createOrderReader } from '../../jobs/order-reader.ts'
import { openDatabase } from '../../platform/database/open-database.ts'
import { platformOver } from '../testkit/testbed.ts'

export interface PileWork {
  databaseUrl: string
  /** Epoch ms. */
  now: number
}

async function work({ databaseUrl, now }: PileWork): Promise<void> {
  const database = await openDatabase(databaseUrl, { create: false })
  const platform = platformOver(database, databaseUrl, { now: () => now })
  const reader = createOrderReader(platform)
  while ((await drainEvents(platform, 'store', 500, applyStoreEvents, reader)) > 0);
  await reader.close()
  await database.close()
}

await work(JSON.parse(process.argv[2] ?? ''))
