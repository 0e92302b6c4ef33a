import { parentPort, workerData } from 'node:worker_threads'
import BetterSqlite from 'better-sqlite3'
import { checkpoint, type LogNews, type LogOrder } from './sqlite-log.ts'

const { file } = workerData as { file: string }
const database = new BetterSqlite(file, { fileMustExist: true, timeout: 0 })
// What is folded in must be on disk before the log is written over.
database.pragma('synchronous = FULL')

function say(news: LogNews): void {
  parentPort?.postMessage(news)
}

parentPort?.on('message', (order: LogOrder) => {
  if (order === 'fold') {
    say(checkpoint(database, 'passive'))
    return
  }
  database.close()
  parentPort?.close()
})

say('open')
