import { setImmediate as passedOn } from 'node:timers/promises'

/**
 * Pages of rows in the order of their keys. While one is worked on, the database already reads the next: over a connection
 * they would otherwise wait for each other all the time.
 */
export async function* readAhead<Row, Key>(
  first: Key | null,
  readPage: (after: Key | null) => Promise<Row[]>,
  keyOf: (row: Row) => Key,
): AsyncGenerator<Row[]> {
  let page = await readPage(first)
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    const next = readPage(keyOf(last))
    const ended = Promise.allSettled([next])
    // Or the question would leave only when this thread has nothing else to do.
    await passedOn()
    try {
      yield page
    } finally {
      // Whoever has seen enough leaves no question open behind.
      await ended
    }
    page = await next
  }
}
