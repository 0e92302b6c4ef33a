import { calmRounds } from './calm-rounds.ts'
import { type Comparison, type Latency, median } from './figures.ts'
import { type Load, type Seen, startGenerator } from './load.ts'
import type { BenchOptions } from './options.ts'
import type { Listening } from './processes.ts'

/** In its first second a new process takes three times as long for a request as later, and a tenth longer in the third. */
const WARM_UP_SECONDS = 4

export type LoadComparison = Omit<Comparison, 'unit' | 'peer' | 'ours' | 'latency' | 'cpu' | 'calm'>

/** Loads the peer and us in turn, after a moment of warming up for both; a round that the host disturbs is done again. */
export async function compareUnderLoad(
  what: LoadComparison,
  { rounds, seconds, generator: name }: Pick<BenchOptions, 'rounds' | 'seconds' | 'generator'>,
  peer: { target: Listening; load: Load },
  ours: { target: Listening; load: Load },
): Promise<Comparison> {
  const generator = startGenerator(name)
  try {
    for (const { target, load } of [peer, ours]) await generator.run(target, load, WARM_UP_SECONDS)
    const { rounds: seen, calm } = await calmRounds(rounds, async () => ({
      peer: await generator.run(peer.target, peer.load, seconds),
      ours: await generator.run(ours.target, ours.load, seconds),
    }))
    return {
      ...what,
      ...sumUp({ peer: seen.map((one) => one.peer), ours: seen.map((one) => one.ours) }),
      calm,
    }
  } finally {
    await generator.stop()
  }
}

function sumUp(seen: {
  peer: readonly Seen[]
  ours: readonly Seen[]
}): Pick<Comparison, 'unit' | 'peer' | 'ours' | 'latency' | 'cpu'> {
  const cpuOf = (all: readonly Seen[]) => median(all.flatMap(({ cpu }) => (cpu === null ? [] : [cpu])))
  return {
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
