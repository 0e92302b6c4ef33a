import { AsyncLocalStorage } from 'node:async_hooks'

const patience = new AsyncLocalStorage<number>()

/** Runs `work`, each of whose statements is given up after `ms`: for what somebody waits for at the other end of a line. */
export function withStatementPatience<T>(ms: number, work: () => T): T {
  return patience.run(ms, work)
}

/** How long a statement of the present work may take, ms; `undefined` for as long as the database's own setting says. */
export function statementPatience(): number | undefined {
  return patience.getStore()
}
