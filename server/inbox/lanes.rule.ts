/** One of several parts of the stores, by their ids. */
export type Lane = readonly string[]

/**
 * Shares stores out to `many` lanes so that about as many events wait in each: the one with most goes to the lane that has least. By a hash
 * of their ids, one of two lanes had twice as much to do as the other now and then.
 */
export function shareOut(waiting: readonly { scope: string; events: number }[], many: number): Lane[] {
  const lanes = Array.from({ length: many }, () => ({ scopes: [] as string[], events: 0 }))
  for (const { scope, events } of waiting.toSorted((a, b) => b.events - a.events)) {
    const least = lanes.reduce((a, b) => (b.events < a.events ? b : a))
    least.scopes.push(scope)
    least.events += events
  }
  return lanes.map(({ scopes }) => scopes).filter((scopes) => scopes.length > 0)
}
