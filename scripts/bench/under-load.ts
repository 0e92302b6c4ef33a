import { type Comparison, type Latency, median } from './figures.ts'
import { type Load, type Seen, startGenerator } from './load.ts'
import type { BenchOptions } from './options.ts'
import type { Listening } from './processes.ts'

/** In its first second a new process takes three times as long for a request as later, and a tenth longer in the third. */
const WARM_UP_SECONDS = 4

export type LoadComparison = Omit<Comparison, 'unit' | 'peer' | 'ours' | 'latency' | 'cpu'>

/** Loads the peer and us in turn, after a moment of warming up for both. */
export async function compareUnderLoad(
  what: LoadComparison,
  { rounds, seconds, generator: name }: Pick<BenchOptions, 'rounds' | 'seconds' | 'generator'>,
  peer: { target: Listening; load: Load },
  ours: { target: Listening; load: Load },
): Promise<Comparison> {
  const generator = startGenerator(name)
  const seen: { peer: Seen[]; ours: Seen[] } = { peer: [], ours: [] }
  try {
    for (const { target, load } of [peer, ours]) await generator.run(target, load, WARM_UP_SECONDS)
    for (let round = 0; round < rounds; round += 1) {
      seen.peer.push(await generator.run(peer.target, peer.load, seconds))
      seen.ours.push(await generator.run(ours.target, ours.load, seconds))
    }
  } finally {
    await generator.stop()
  }
  const cpuOf = (all: readonly Seen[]) => median(all.flatMap(({ cpu }) => (cpu === null ? [] : [cpu])))
  return {
    ...what,
    unit: 'requests/s',
    peer: seen.peer.map(({ perSecond }) => perSecond),
    ours: seen.ours.map(({ perSecond }) => perSecond),
    latency: { ours: latencyOf(seen.ours), peer: latencyOf(seen.peer) },
    cpu: { ours: cpuOf(seen.ours), peer: cpuOf(seen.peer) },
  }
}

function latencyOf(rounds: readonly Seen[]): Latency {
  return {
    p50: median(rounds.map(({ p50 }) => p50)),
    p99: median(rounds.map(({ p99 }) => p99)),
    most: Math.max(...rounds.map(({ most }) => most)),
  }
}
