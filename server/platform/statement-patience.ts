import { AsyncLocalStorage } from 'node:async_hooks'

const patience = new AsyncLocalStorage<number>()

/** How long one statement of a database that has stalled is waited for; jobs wait longer, with nobody on the line. */
const STATEMENT_PATIENCE_MS = 5000

/** Runs `work`, whose statements are given up after five seconds each: for what somebody waits for at the other end of a line. */
export function withStatementPatience<T>(work: () => T): T {
  return patience.run(STATEMENT_PATIENCE_MS, work)
}

/** How long a statement of the present work may take, ms; `undefined` for as long as the database's own setting says. */
export function statementPatience(): number | undefined {
  return patience.getStore()
}
