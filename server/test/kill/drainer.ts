// A worker in its own process: drains the inbox and ends, unless it is killed before.
import { writeSync } from 'node:fs'
import type { KyselyPlugin } from 'kysely'
import { createOrderReader } from '../../jobs/order-reader.ts'
import { drainUntilIdle } from '../../jobs/worker.ts'
import type { Database } from '../../platform/database/database.ts'
import { openDatabase } from '../../platform/database/open-database.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../../processor/events.settings.ts'
import { countedReader } from '../testkit/counted-reader.ts'
import { ScriptedProcessor } from '../testkit/scripted-processor.ts'
import { platformOver } from '../testkit/testbed.ts'

export interface Drain {
  databaseUrl: string
  /** Epoch ms. */
  now: number
  batchSize: number
  /** It dies when the database has answered so many statements and commits; `null`: it works everything off. */
  dieAfter: number | null
}

/** Said as the last word, be that before its death. */
export interface LastWord {
  /** How many orders were taken as the thread had read them. */
  used: number
  /** And how many lay ready. */
  ready: number
}

/** The same database; `onAnswer` is called after each statement and each transaction. */
function watched(database: Database, onAnswer: () => void): Database {
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      onAnswer()
      return result
    },
  }
  return {
    dialect: database.dialect,
    reader: database.reader.withPlugin(plugin),
    async transaction(work) {
      const result = await database.transaction((tx) => work(tx.withPlugin(plugin)))
      onAnswer()
      return result
    },
    executeBatch: (...statements) => database.executeBatch(...statements),
    faultOf: (error) => database.faultOf(error),
    close: () => database.close(),
  }
}

async function drain({ databaseUrl, now, batchSize, dieAfter }: Drain): Promise<void> {
  const database = await openDatabase(databaseUrl, { create: false })
  const platform = platformOver(database, databaseUrl, { now: () => now })
  const reader = countedReader(createOrderReader(platform))
  const sayLastWord = () => {
    const word: LastWord = { used: reader.used, ready: reader.read().size }
    writeSync(1, JSON.stringify(word))
  }
  let answers = 0
  const onAnswer = () => {
    answers += 1
    if (answers !== dieAfter) return
    sayLastWord()
    process.kill(process.pid, 'SIGKILL')
  }
  await reader.readAhead(1)
  const parts = { processor: new ScriptedProcessor(), eventRules: GENERIC_PROCESSOR_EVENTS }
  await drainUntilIdle(
    { platform: { ...platform, database: watched(platform.database, onAnswer) }, ...parts },
    { reader, batchSize },
  )
  sayLastWord()
  await reader.close()
  await database.close()
}

await drain(JSON.parse(process.argv[2] ?? ''))
